"""The oplog: entries, deltas and transactions, and what reads them.

Entries and deltas are pure views over raw BSON. The readers hand out raw entries in
log order, in batches of bounded memory; ``archive.py`` reads files. Nothing here
knows what an event is.
"""
