"""Throw-away real servers, for development and tests: started, used, and gone.

A server lives in a temporary folder, listens on the loopback address only, and ends
with its owner: by ``close``, by the end of a ``with`` block, or by the watchdog when
the owner was killed. Binaries come from the ``embedded`` extra or the path.
"""

from tailrace.embedded.cluster import ShardedCluster
from tailrace.embedded.folder import ServerFolder
from tailrace.embedded.login import Login
from tailrace.embedded.mongod import MongodOptions
from tailrace.embedded.node import Node
from tailrace.embedded.postgres import Postgres
from tailrace.embedded.replica_set import ReplicaSet
from tailrace.embedded.shard_stream import ShardStream
from tailrace.embedded.transactions import Transaction

__all__ = [
    "Login",
    "MongodOptions",
    "Node",
    "Postgres",
    "ReplicaSet",
    "ServerFolder",
    "ShardStream",
    "ShardedCluster",
    "Transaction",
]
