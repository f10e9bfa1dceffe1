"""A set of three that may be hurt, shared by the tests of this folder that run on one worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailrace.embedded import ReplicaSet


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[ReplicaSet]:
    """A set of three whose members can be cut off."""
    with ReplicaSet(3, partitionable=True, noop_interval_s=1) as replica_set:
        yield replica_set


@pytest.fixture
def three(three_nodes: ReplicaSet) -> Iterator[ReplicaSet]:
    """The set of three; whole again after the test."""
    yield three_nodes
    three_nodes.await_members()
    three_nodes.await_caught_up()
