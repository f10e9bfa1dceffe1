"""From rows of the source to tables that equal the database, one commit per table and cut."""
