"""The router room."""
