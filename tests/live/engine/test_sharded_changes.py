"""A cluster that changes under a stream: shards come and go, some have nothing to say.

Its servers write their periodic no-op every 10 s, as they do by default: what is faster
than that is our doing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.change_streams import Seen, differences, server_stream
from tests.support.cluster_streams import (
    cluster_now,
    in_one_order,
    merged_stream,
    read_until,
    settled,
    shards_merged,
    token_of,
)
from tests.support.cluster_workload import ClusterWorkload
from tests.support.effort import effort

import tailrace
from tailrace.embedded import ShardedCluster

pytestmark = pytest.mark.xdist_group("changing-cluster")

Client = MongoClient[dict[str, Any]]
NO_OP = "noop write for afterClusterTime read concern"
LATENCY_S = 1.0


@pytest.fixture(scope="module")
def changing() -> Iterator[ShardedCluster]:
    with ShardedCluster() as cluster:
        yield cluster


@pytest.fixture
def config(changing: ShardedCluster) -> Client:
    return changing.config.client()


@pytest.fixture
def base(changing: ShardedCluster, request: pytest.FixtureRequest) -> str:
    name = request.node.originalname[:40]
    changing.create_database(name, "s1")
    return str(name)


def next_event(stream: tailrace.OplogStream, within_s: float) -> bytes:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        events, _ = stream.next_batch()
        if events:
            assert len(events) == 1
            return events[0]
    raise AssertionError(f"no event within {within_s:g} s")


def test_one_busy_shard_is_not_held_back_by_the_idle_ones(
    changing: ShardedCluster, config: Client, base: str
) -> None:
    namespace = f"{base}.busy"
    changing.insert(namespace, {"_id": -1})
    waits = []
    with tailrace.open_oplog(config, base, max_await_ms=500) as stream:
        for number in range(effort(20)):
            written = time.monotonic()
            changing.insert(namespace, {"_id": number})
            next_event(stream, within_s=15)
            waits.append(time.monotonic() - written)
    assert statistics.quantiles(waits, n=100)[-1] < LATENCY_S, waits


def test_shards_are_left_alone_when_that_is_wanted(
    changing: ShardedCluster, config: Client, base: str
) -> None:
    def moved() -> int:
        oplogs = [shard.primary().client.local["oplog.rs"] for shard in changing.shards.values()]
        return sum(oplog.count_documents({"o": {NO_OP: 1}}) for oplog in oplogs)

    namespace = f"{base}.alone"
    changing.insert(namespace, {"_id": -1})
    settled(changing)
    before = moved()
    with tailrace.open_oplog(config, base, max_await_ms=200, advance=False) as stream:
        changing.insert(namespace, {"_id": 1})
        next_event(stream, within_s=30)
    assert moved() == before
    with tailrace.open_oplog(config, base, max_await_ms=200) as stream:
        changing.insert(namespace, {"_id": 2})
        next_event(stream, within_s=30)
    assert moved() > before


def test_a_shard_that_joins_is_read_from_its_first_write_on(
    changing: ShardedCluster, config: Client, base: str
) -> None:
    work = ClusterWorkload(changing, base, seed=31)
    work.set_up()
    start = cluster_now(changing)
    seen = Seen()
    with tailrace.open_oplog(config, base, max_await_ms=200) as stream:
        work.run(writers=1, writes=30, moves=1)
        before = merged_stream(config, base, {"startAtOperationTime": start}, settled(changing))
        added = changing.add_shard().name
        namespace = f"{base}.ranged"
        changing.move_range(namespace, added, {"k": 0}, {"k": 10})
        changing.insert(namespace, *({"_id": key, "k": key % 100} for key in range(-30, -1)))
        changing.create_database(f"{base}_new", added)
        work.run(writers=1, writes=30, moves=2)
        until = settled(changing)
        read_until(stream, seen, until)
    options = {"startAtOperationTime": start}
    theirs = shards_merged(changing, base, options, until)
    assert not differences(in_one_order(seen.events), in_one_order(theirs))
    own = changing.shards[added].primary().client
    theirs_alone = server_stream(own, base, options, until=until).events
    assert theirs_alone
    assert set(theirs_alone) <= set(seen.events)
    for place in (0, len(before.events) // 2, len(before.events) - 1):
        token = bson.decode(before.events[place])["_id"]
        rest = [event for event in theirs if token_of(event) > token["_data"]]
        again = merged_stream(config, base, {"resumeAfter": token}, until)
        assert again.error is None
        assert not differences(in_one_order(again.events), in_one_order(rest))


def test_a_shard_that_goes_ends_and_takes_older_tokens_with_it(
    changing: ShardedCluster, config: Client, base: str
) -> None:
    namespace = f"{base}.stays"
    changing.insert(namespace, {"_id": 0})
    leaving = changing.add_shard("leaving").name
    changing.create_database(f"{base}_moved", leaving)
    old = cluster_now(changing)
    with tailrace.open_oplog(config, max_await_ms=200) as stream:
        changing.insert(f"{base}_moved.things", {"_id": 1})
        changing.drop_database(f"{base}_moved")
        changing.remove_shard(leaving)
        changing.insert(namespace, {"_id": 1})
        seen = read_until(stream, Seen(), settled(changing))
        assert leaving not in [shard.name for shard in stream.shards()]
    assert seen.operations()[0] == "insert"
    assert bson.decode(seen.events[-1])["ns"]["coll"] == "stays"
    with (
        pytest.raises(tailrace.ServerError) as lost,
        tailrace.open_oplog(config, start_at_operation_time=old, max_await_ms=200) as stream,
    ):
        read_until(stream, Seen(), settled(changing))
    assert lost.value.code == 286
    assert lost.value.shard == leaving
