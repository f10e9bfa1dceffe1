"""Live sharded clusters: found, read shard by shard, and made into one stream."""

from tailrace.engine.sharded.clients import ShardCredentials
from tailrace.engine.sharded.front import Wanted, open_cluster
from tailrace.engine.sharded.stream import ShardedStream, ShardStatus
from tailrace.engine.sharded.topology import discovered, listed

__all__ = [
    "ShardCredentials",
    "ShardStatus",
    "ShardedStream",
    "Wanted",
    "discovered",
    "listed",
    "open_cluster",
]
