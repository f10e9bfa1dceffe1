"""The merge of the shards' streams into one, in token order.

Takes events and promised sort keys, whoever makes them; knows nothing of entries.
"""

from tailrace.router.merge import Keyed, Merge, Place

__all__ = ["Keyed", "Merge", "Place"]
