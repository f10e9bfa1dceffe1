"""Sharded clusters for tests: one that a worker's tests share, and special ones on demand.

``cluster`` has two shards of one node. A test keeps to its own database
(``cluster_database``, whose primary shard is ``s1``), and neither ends a node nor adds
a shard. A test that must do such things starts its own with ``start_cluster``.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from tailrace.embedded import ShardedCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[ShardedCluster]:
    """The cluster that a worker's tests share."""
    with ShardedCluster(noop_interval_s=1) as cluster:
        yield cluster


@pytest.fixture
def cluster_database(cluster: ShardedCluster) -> Iterator[str]:
    """The name of a database of the shared cluster that only this test uses."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    cluster.create_database(name, "s1")
    yield name
    cluster.drop_database(name)


@pytest.fixture
def start_cluster() -> Iterator[Callable[..., ShardedCluster]]:
    """Start a cluster of one's own, with the options of ``ShardedCluster``."""
    with contextlib.ExitStack() as stack:
        yield lambda *shards, **options: stack.enter_context(ShardedCluster(*shards, **options))
