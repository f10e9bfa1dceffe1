"""The merge of the shards' streams into one, in token order.

Takes events and promised sort keys, whoever makes them; knows nothing of entries.
"""
