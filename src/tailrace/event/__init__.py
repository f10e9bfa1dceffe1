"""The event room."""
