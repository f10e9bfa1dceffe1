"""One stream over a live cluster: what each shard's own stream says, in the order of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.change_streams import Seen, differences
from tests.support.cluster_streams import (
    cluster_now,
    in_one_order,
    merged_stream,
    read_until,
    settled,
    shards_merged,
    token_of,
)
from tests.support.cluster_workload import WRITER_KEYS, ClusterWorkload, Write
from tests.support.effort import effort

import tailrace
from tailrace.embedded import ShardedCluster

pytestmark = pytest.mark.xdist_group("cluster")

Client = MongoClient[dict[str, Any]]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"showExpandedEvents": True},
    {"showExpandedEvents": True, "showSystemEvents": True},
]
NO_NUMBER = -1


@pytest.fixture
def config(cluster: ShardedCluster) -> Client:
    return cluster.config.client()


def test_the_stream_is_the_merge_of_the_shards_own_while_ranges_move(
    cluster: ShardedCluster, config: Client, cluster_database: str
) -> None:
    work = ClusterWorkload(cluster, cluster_database, seed=11)
    work.set_up()
    start = cluster_now(cluster)
    seen = Seen()
    with tailrace.open_oplog(config, cluster_database, max_await_ms=200) as stream:
        work.run(writers=2, writes=effort(120), moves=effort(4))
        until = settled(cluster)
        read_until(stream, seen, until)
    for options in OPTIONS:
        given = {**options, "startAtOperationTime": start}
        theirs = shards_merged(cluster, cluster_database, given, until)
        ours = merged_stream(config, cluster_database, given, until)
        assert ours.error is None
        assert not differences(in_one_order(ours.events), in_one_order(theirs))
        if not options:
            assert not differences(in_one_order(seen.events), in_one_order(theirs))
    every_write_is_there_once_and_in_its_order(work, seen.events)
    assert work.moves == effort(4)


def shown_writes(events: list[bytes]) -> Iterator[Write]:
    """The writes that events show; a delete does not say when its session made it."""
    for event in map(bson.decode, events):
        operation = event["operationType"]
        if operation in ("insert", "update", "delete"):
            said = event.get("fullDocument") or event.get("updateDescription", {})
            number = said.get("updatedFields", said).get("n", NO_NUMBER)
            yield Write(
                "{db}.{coll}".format(**event["ns"]),
                operation,
                event["documentKey"]["_id"],
                event["documentKey"]["_id"] // WRITER_KEYS,
                number,
            )


def every_write_is_there_once_and_in_its_order(work: ClusterWorkload, events: list[bytes]) -> None:
    shown: dict[int, list[Write]] = {}
    for write in shown_writes(events):
        shown.setdefault(write.writer, []).append(write)
    for writer, writes in enumerate(work.acknowledged):
        expected = [
            replace(write, number=NO_NUMBER) if write.operation == "delete" else write
            for write in writes
        ]
        assert shown[writer] == expected


def test_behind_every_token_comes_exactly_the_rest(
    cluster: ShardedCluster, config: Client, cluster_database: str
) -> None:
    work = ClusterWorkload(cluster, cluster_database, seed=12)
    work.set_up()
    start = cluster_now(cluster)
    work.run(writers=1, writes=40, moves=1)
    until = settled(cluster)
    options = {"startAtOperationTime": start}
    whole = merged_stream(config, cluster_database, options, until)
    dice = random.Random(12)
    for place in sorted(dice.sample(range(len(whole.events)), effort(6))):
        token = bson.decode(whole.events[place])["_id"]
        rest = [event for event in whole.events if token_of(event) > token["_data"]]
        seen = merged_stream(config, cluster_database, {"resumeAfter": token}, until)
        assert not differences(seen.events, rest)
    for token in whole.tokens[:: max(1, len(whole.tokens) // 3)]:
        rest = [event for event in whole.events if token_of(event) > token["_data"]]
        seen = merged_stream(config, cluster_database, {"startAfter": token}, until)
        assert not differences(seen.events, rest)


def test_a_batch_may_be_cut_anywhere(
    cluster: ShardedCluster, config: Client, cluster_database: str
) -> None:
    work = ClusterWorkload(cluster, cluster_database, seed=13)
    work.set_up()
    start = cluster_now(cluster)
    work.run(writers=1, writes=20, moves=0)
    until = settled(cluster)
    given = {"options": {"startAtOperationTime": start}, "max_await_ms": 200}
    expected = merged_stream(config, cluster_database, given["options"], until).events
    with tailrace.open_oplog(config, cluster_database, **given) as stream:
        for place in range(len(expected)):
            events, token = stream.next_batch(max_events=1)
            while not events:
                events, token = stream.next_batch(max_events=1)
            assert events == [expected[place]]
            rest = expected[place + 1 :]
            assert token["_data"] >= token_of(expected[place])
            assert not rest or token["_data"] < token_of(rest[0])


def test_a_sharded_collections_drop_ends_its_stream_once(
    cluster: ShardedCluster, config: Client, cluster_database: str
) -> None:
    namespace = f"{cluster_database}.gone"
    cluster.shard_collection(namespace, {"k": 1})
    cluster.move_range(namespace, "s2", {"k": 50})
    start = cluster_now(cluster)
    cluster.insert(namespace, {"_id": 1, "k": 1}, {"_id": 2, "k": 60})
    cluster.drop(namespace)
    until = settled(cluster)
    options = {"startAtOperationTime": start}
    seen = merged_stream(config, namespace, options, until)
    theirs = shards_merged(cluster, namespace, options, until)
    assert seen.ended
    assert not differences(in_one_order(seen.events), in_one_order(theirs))
    assert seen.operations()[-1] == "invalidate"
    assert seen.token == bson.decode(seen.events[-1])["_id"]
    again = merged_stream(config, namespace, {"startAfter": seen.token}, until)
    assert again.error is None
    assert "invalidate" not in again.operations()


def test_a_document_is_looked_up_with_its_owner_never_with_an_orphan(
    cluster: ShardedCluster, config: Client, cluster_database: str
) -> None:
    namespace = f"{cluster_database}.moved"
    cluster.shard_collection(namespace, {"k": 1})
    cluster.insert(namespace, {"_id": 1, "k": 60, "v": 0}, {"_id": 2, "k": 70, "v": 0})
    start = cluster_now(cluster)
    cluster.update(namespace, {"_id": 1, "k": 60}, {"$set": {"v": 1}})
    cluster.update(namespace, {"_id": 2, "k": 70}, {"$set": {"v": 1}})
    cluster.move_range(namespace, "s2", {"k": 50})
    cluster.update(namespace, {"_id": 1, "k": 60}, {"$set": {"v": 2}})
    cluster.delete(namespace, {"_id": 2, "k": 70})
    # An orphan: written to a shard that does not own its key, as if left behind.
    orphan = cluster.shards["s1"].primary().client[cluster_database]["moved"]
    orphan.insert_one({"_id": 2, "k": 70, "v": "orphan"})
    orphan.insert_one({"_id": 1, "k": 60, "v": "orphan"})
    until = settled(cluster)
    options = {"startAtOperationTime": start, "fullDocument": "updateLookup"}
    seen = merged_stream(config, namespace, options, until)
    assert seen.error is None
    looked_up = [
        (event["documentKey"]["_id"], event["fullDocument"])
        for event in map(bson.decode, seen.events)
        if event["operationType"] == "update"
    ]
    owned = {"_id": 1, "k": 60, "v": 2}
    assert looked_up == [(1, owned), (2, None), (1, owned)]


def test_migrations_are_refused_as_a_mongos_refuses_them(config: Client) -> None:
    with pytest.raises(tailrace.ServerError) as refused:
        tailrace.open_oplog(config, options={"showMigrationEvents": True})
    assert refused.value.code == 31123


def test_listed_shards_are_read_without_a_config_server(
    cluster: ShardedCluster, cluster_database: str
) -> None:
    namespace = f"{cluster_database}.listed"
    cluster.shard_collection(namespace, {"k": 1})
    cluster.move_range(namespace, "s2", {"k": 50})
    start = cluster_now(cluster)
    cluster.insert(namespace, {"_id": 1, "k": 1}, {"_id": 2, "k": 60})
    until = settled(cluster)
    options = {"startAtOperationTime": start}
    clients = {name: shard.client() for name, shard in cluster.shards.items()}
    seen = merged_stream(clients, namespace, options, until)
    assert not differences(seen.events, shards_merged(cluster, namespace, options, until))
    only_one = {"s1": clients["s1"]}
    with (
        tailrace.open_oplog(only_one, namespace, max_await_ms=200) as stream,
        pytest.raises(tailrace.TailraceError) as unknown,
    ):
        cluster.move_range(namespace, "s1", {"k": 50})
        cluster.move_range(namespace, "s2", None, {"k": 50})
        read_until(stream, Seen(), settled(cluster))
    assert unknown.value.shard == "s2"


def test_what_comes_before_an_error_is_handed_out_first(
    cluster: ShardedCluster, config: Client, cluster_database: str
) -> None:
    namespace = f"{cluster_database}.spoilt"
    cluster.insert(namespace, {"_id": 0})
    without_token = {"$cond": [{"$eq": ["$documentKey._id", 2]}, {}, "$$ROOT"]}
    stages = [{"$replaceRoot": {"newRoot": without_token}}]
    start = cluster_now(cluster)
    cluster.insert(namespace, {"_id": 1}, {"_id": 2}, {"_id": 3})
    until = settled(cluster)
    options = {"startAtOperationTime": start}
    with tailrace.open_oplog(config, namespace, options=options, pipeline=stages) as stream:
        seen = Seen()
        with pytest.raises(tailrace.ServerError) as spoilt:
            read_until(stream, seen, until)
        assert not stream.alive
    assert spoilt.value.code == 280
    assert [bson.decode(event)["documentKey"]["_id"] for event in seen.events] == [1]


def test_the_driver_watches_a_cluster_with_our_own_engine(
    cluster: ShardedCluster, config: Client, cluster_database: str
) -> None:
    cluster.shard_collection(f"{cluster_database}.driven", {"k": 1})
    cluster.move_range(f"{cluster_database}.driven", "s2", {"k": 50})
    collection = config[cluster_database]["driven"]
    with tailrace.watch(collection, engine="oplog", max_await_time_ms=200) as stream:
        written = [{"_id": number, "k": 30 * number} for number in range(4)]
        cluster.insert(f"{cluster_database}.driven", *written)
        seen = [next(stream)["fullDocument"] for _ in written]
        assert {shard.name for shard in stream.shards()} == {"s1", "s2"}
    assert seen == written
