"""Oplog entries become event documents: final BSON, byte for byte as the server's.

One file per group of the event reference. ``shape.py`` says what each server version
shows; ``build.py`` is the table from the kind of an entry to its builder. Knows
neither how entries are read nor which of them a stream wants.
"""
