"""The token room."""
