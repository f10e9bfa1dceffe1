"""A shard that stops, and a shard that loses its primary: the stream waits, and goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from tests.support.change_streams import Seen, differences
from tests.support.cluster_streams import (
    cluster_now,
    in_one_order,
    read_until,
    settled,
    shards_merged,
    token_of,
)
from tests.support.effort import effort
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet, ShardedCluster

pytestmark = pytest.mark.xdist_group("hurt-cluster")

Client = MongoClient[dict[str, Any]]
FROZEN_S = min(20, effort(4))
GOES_ON_S = 2.0
ELECTION_MS = 2_000


@pytest.fixture(scope="module")
def hurt() -> Iterator[ShardedCluster]:
    with ShardedCluster(2) as cluster:
        cluster.add_shard("three", nodes=3, election_timeout_ms=ELECTION_MS)
        yield cluster


@pytest.fixture
def namespace(hurt: ShardedCluster, request: pytest.FixtureRequest) -> str:
    """A collection with a third of its keys on each shard."""
    name = f"{request.node.originalname[:40]}.things"
    hurt.create_database(name.partition(".")[0], "s1")
    hurt.shard_collection(name, {"_id": 1})
    hurt.move_range(name, "s2", {"_id": 10_000}, {"_id": 20_000})
    hurt.move_range(name, "three", {"_id": 20_000})
    return name


class Load(threading.Thread):
    """Writes to some shards until it is told to stop."""

    def __init__(self, cluster: ShardedCluster, namespace: str, *firsts: int) -> None:
        super().__init__()
        self._cluster, self._namespace, self._firsts = cluster, namespace, firsts
        self.stopping = threading.Event()
        self.written = 0

    def run(self) -> None:
        while not self.stopping.wait(0.005):
            for first in self._firsts:
                self._cluster.insert(self._namespace, {"_id": first + self.written})
            self.written += 1


def in_order(events: list[bytes]) -> bool:
    tokens = [token_of(event) for event in events]
    return tokens == sorted(tokens)


def read_while(stream: tailrace.OplogStream, seen: Seen, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen.events += stream.next_batch()[0]


def check_all(hurt: ShardedCluster, namespace: str, start: Any, seen: Seen, until: Any) -> None:
    theirs = shards_merged(hurt, namespace, {"startAtOperationTime": start}, until)
    assert in_order(seen.events)
    assert not differences(in_one_order(seen.events), in_one_order(theirs))


def test_a_frozen_shard_is_waited_for_and_nothing_is_out_of_order(
    hurt: ShardedCluster, namespace: str
) -> None:
    frozen = hurt.shards["s2"]
    seen = Seen()
    with tailrace.open_oplog(hurt.config.client(), namespace, max_await_ms=100) as stream:
        start = cluster_now(hurt)
        load = Load(hurt, namespace, 0)
        load.start()
        eventually(lambda: bool(seen.events) or read_while(stream, seen, 0.1), "a first event")
        frozen.freeze(frozen.nodes[0])
        try:
            read_while(stream, seen, FROZEN_S)
            written, before = load.written, len(seen.events)
        finally:
            frozen.thaw(frozen.nodes[0])
        thawed = time.monotonic()
        eventually(
            lambda: len(seen.events) >= written or read_while(stream, seen, 0.02),
            "what was written while the shard was frozen",
        )
        went_on_s = time.monotonic() - thawed
        load.stopping.set()
        load.join()
        hurt.insert(namespace, {"_id": 10_001})
        until = settled(hurt)
        read_until(stream, seen, until)
    assert before < written, "events left before the frozen shard had promised anything"
    assert went_on_s < GOES_ON_S
    seen.events = [event for event in seen.events if token_of(event) >= mark(start)]
    check_all(hurt, namespace, start, seen, until)


def mark(time: Any) -> str:
    return f"82{time.time:08X}{time.inc:08X}"


def test_a_shard_whose_primary_is_killed_is_read_on(hurt: ShardedCluster, namespace: str) -> None:
    shard: ReplicaSet = hurt.shards["three"]
    seen = Seen()
    with tailrace.open_oplog(hurt.config.client(), namespace, max_await_ms=100) as stream:
        start = cluster_now(hurt)
        hurt.insert(namespace, *({"_id": 20_000 + number} for number in range(50)))
        load = Load(hurt, namespace, 0)
        load.start()
        eventually(lambda: bool(seen.events) or read_while(stream, seen, 0.1), "a first event")
        killed = shard.primary()
        shard.kill(killed)
        assert shard.primary() is not killed
        hurt.insert(namespace, *({"_id": 21_000 + number} for number in range(50)))
        load.stopping.set()
        load.join()
        shard.restart(killed)
        until = settled(hurt)
        read_until(stream, seen, until)
    check_all(hurt, namespace, start, seen, until)
