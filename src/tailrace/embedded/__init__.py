"""The embedded room."""
