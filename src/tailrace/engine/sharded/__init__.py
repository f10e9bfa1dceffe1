"""Live sharded clusters: found, read shard by shard, and made into one stream."""

from tailrace.engine.sharded.clients import ShardCredentials
from tailrace.engine.sharded.front import Wanted, open_cluster
from tailrace.engine.sharded.stream import ShardedStream
from tailrace.engine.sharded.topology import discovered, listed, named

__all__ = [
    "ShardCredentials",
    "ShardedStream",
    "Wanted",
    "discovered",
    "listed",
    "named",
    "open_cluster",
]
