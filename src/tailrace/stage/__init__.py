"""The stage room."""
