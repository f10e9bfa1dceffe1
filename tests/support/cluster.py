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


class SharedCluster:
    """The cluster of a worker, and a new one when a server of it ended by itself."""

    def __init__(self) -> None:
        self._cluster: ShardedCluster | None = None

    def get(self) -> ShardedCluster:
        if self._cluster is None or not self._cluster.running:
            self.close()
            self._cluster = ShardedCluster(noop_interval_s=1)
            self._cluster.start()
        return self._cluster

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[SharedCluster]:
    """What starts the shared cluster when the first test asks for it."""
    shared = SharedCluster()
    yield shared
    shared.close()


@pytest.fixture
def cluster(shared_cluster: SharedCluster) -> ShardedCluster:
    """The cluster that a worker's tests share."""
    return shared_cluster.get()


@pytest.fixture
def cluster_database(cluster: ShardedCluster) -> Iterator[str]:
    """The name of a database of the shared cluster that only this test uses."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    cluster.create_database(name, "s1")
    yield name
    if cluster.running:
        cluster.drop_database(name)


@pytest.fixture
def start_cluster() -> Iterator[Callable[..., ShardedCluster]]:
    """Start a cluster of one's own, with the options of ``ShardedCluster``."""
    with contextlib.ExitStack() as stack:
        yield lambda *shards, **options: stack.enter_context(ShardedCluster(*shards, **options))
