"""A shard's stream as a mongos opens it: what the shard tells everybody, and more."""

from __future__ import annotations

import contextlib
from typing import Any

import bson
import pytest
from bson import Timestamp
from bson.raw_bson import RawBSONDocument
from tests.support.waiting import eventually

from tailrace.embedded import ShardedCluster

pytestmark = pytest.mark.xdist_group("cluster")

CONTROL = {"kNewShardDetected", "migrateChunkToNewShard"}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"showExpandedEvents": True},
    {"fullDocument": "whenAvailable", "fullDocumentBeforeChange": "required"},
]


def direct(
    cluster: ShardedCluster, namespace: str, options: dict[str, Any], wanted: int
) -> list[bytes]:
    """The same events by the shard's own change stream."""
    database, _, collection = namespace.partition(".")
    client = cluster.shards["s1"].client(document_class=RawBSONDocument)
    found: list[bytes] = []

    def all_there() -> bool:
        event = stream.try_next()
        if event is not None:
            found.append(event.raw)
        return len(found) == wanted

    with client[database][collection].aggregate([{"$changeStream": options}]) as stream:
        eventually(all_there, f"{wanted} events")
    return found


def as_mongos(
    cluster: ShardedCluster, namespace: str, options: dict[str, Any], wanted: int
) -> list[RawBSONDocument]:
    found: list[RawBSONDocument] = []
    with contextlib.closing(cluster.shard_stream("s1", namespace, **options)) as stream:
        while len(found) < wanted:
            batch = stream.read()
            assert batch, f"only {len(found)} of {wanted} events"
            found += batch
        assert stream.promise["_data"] >= found[-1]["_id"]["_data"]
    return found


def without_sort_key(event: RawBSONDocument) -> bytes:
    return bson.encode({name: value for name, value in event.items() if name != "$sortKey"})


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "expanded", "images"])
def test_its_events_are_the_shards_own_and_carry_their_sort_key(
    cluster: ShardedCluster, cluster_database: str, options: dict[str, Any]
) -> None:
    namespace = f"{cluster_database}.things"
    cluster.shard_collection(namespace, {"k": 1})
    cluster.coll_mod(namespace, changeStreamPreAndPostImages={"enabled": True})
    start = now(cluster)
    cluster.insert(namespace, {"_id": 1, "k": 1})
    cluster.update(namespace, {"k": 1}, {"$set": {"a": [1, 2]}})
    cluster.delete(namespace, {"k": 1})
    cluster.move_range(namespace, "s2", {"k": 50})
    cluster.insert(namespace, {"_id": 2, "k": 2})
    given = {**options, "startAtOperationTime": start}
    expected = direct(cluster, namespace, given, 4)
    events = as_mongos(cluster, namespace, given, len(expected) + 1)
    kinds = [event["operationType"] for event in events]
    assert len(CONTROL & set(kinds)) == 1
    assert all(event["$sortKey"] == [event["_id"]] for event in events)
    plain = [without_sort_key(event) for event in events if event["operationType"] not in CONTROL]
    assert plain == expected


def now(cluster: ShardedCluster) -> Timestamp:
    answer = cluster.shards["s1"].primary().command("ping")
    return Timestamp(answer["operationTime"].time, answer["operationTime"].inc + 1)
