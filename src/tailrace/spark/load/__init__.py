"""The initial load: every collection read in ranges of ``_id``, each at its own time."""
