"""The oplog room."""
