"""A shard's change stream, one file per stage, in the server's order.

match, unwind, transform, invalidate, resume, images, the user's pipeline, limit.
``shard.py`` puts them together. Entries in, events out: nothing here reads or waits;
what a stage must look up comes through the ``Lookups`` port.
"""
