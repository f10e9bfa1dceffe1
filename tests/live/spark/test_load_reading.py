"""Ranges of collections: complete for every ``_id`` type, each at one time, through renames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import bson
import pytest
from bson import MaxKey, MinKey, ObjectId
from pymongo import MongoClient
from pymongo.errors import OperationFailure
from tests.support.waiting import eventually

from tailrace.embedded import ReplicaSet
from tailrace.oplog.deployment import Deployment
from tailrace.spark.load import plan as planning
from tailrace.spark.load.plan import CollectionPlan, find_collections, plan_collection
from tailrace.spark.load.reading import RAW, RangeReader

Client = MongoClient[dict[str, Any]]
SMALL_RANGE_BYTES = 20_000
SNAPSHOT_TOO_OLD = 239
MIXED: list[Any] = [
    *range(2000),
    *(str(number) for number in range(2000)),
    *(ObjectId() for _ in range(1000)),
    *({"a": number} for number in range(1000)),
    None,
    2.5,
    MinKey(),
    MaxKey(),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"collation": {"locale": "en", "strength": 2}},
    {"clusteredIndex": {"key": {"_id": 1}, "unique": True}},
]


@pytest.fixture(scope="module")
def forgetful() -> Iterator[ReplicaSet]:
    """A set that keeps hardly any history."""
    window = {"minSnapshotHistoryWindowInSeconds": 1}
    with ReplicaSet(noop_interval_s=1, parameters=window) as replica_set:
        yield replica_set


def documents(client: Client, namespace: str) -> set[bytes]:
    database, _, name = namespace.partition(".")
    return {
        bytes(each.raw) for each in client[database].get_collection(name, codec_options=RAW).find()
    }


def planned(client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch) -> CollectionPlan:
    monkeypatch.setattr(planning, "RANGE_BYTES", SMALL_RANGE_BYTES)
    deployment = Deployment(client)
    found = find_collections(deployment, lambda name: name == namespace)
    plan = plan_collection(deployment, found[0])
    assert CollectionPlan.parse(namespace, plan.document) == plan
    return plan


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "collation", "clustered"])
def test_the_ranges_of_mixed_ids_hold_every_document_once(
    mongodb_client: Client,
    database_name: str,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collection = mongodb_client[database_name].create_collection("mixed", **options)
    collection.insert_many([{"_id": each} for each in MIXED])
    plan = planned(mongodb_client, collection.full_name, monkeypatch)
    assert len(plan.splits) > 3
    reader = RangeReader(mongodb_client)
    read = [
        each for bounds in plan.ranges for each in reader.read(plan.namespace, plan.uuid, *bounds)
    ]
    assert len(read) == len(MIXED)
    assert {each.document for each in read} == documents(mongodb_client, plan.namespace)


def test_what_is_no_ordinary_collection_is_named_with_the_reason(
    mongodb_client: Client, database_name: str
) -> None:
    database = mongodb_client[database_name]
    database.create_collection("plain")
    database.create_collection("view", viewOn="plain", pipeline=[])
    database.create_collection("series", timeseries={"timeField": "at"})
    database.create_collection("capped", capped=True, size=4096)
    found = find_collections(
        Deployment(mongodb_client), lambda name: name.startswith(database_name + ".")
    )
    assert {each.namespace.partition(".")[2]: bool(each.left_out) for each in found} == {
        "capped": True,
        "plain": False,
        "series": True,
        "view": True,
    }


def test_a_range_goes_on_when_the_server_forgets_its_time(
    forgetful: ReplicaSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = forgetful.client()
    client.shop.other.insert_one({})
    collection = client.shop.slow
    collection.insert_many([{"_id": number} for number in range(3000)])
    plan = planned(client, "shop.slow", monkeypatch)
    reader = RangeReader(client, batch_size=10)
    find, forgotten = reader._find, []

    def slow(namespace: str, time: int, fields: dict[str, Any]) -> Iterator[bytes]:
        for number, document in enumerate(find(namespace, time, fields)):
            if number == 500 and len(forgotten) < 3:
                eventually(lambda: is_forgotten(client, reader, time), "the server forgets")
                forgotten.append(time)
            yield document

    monkeypatch.setattr(reader, "_find", slow)
    read = reader.read("shop.slow", plan.uuid, None, None)
    assert len(forgotten) == 3
    assert [bson.decode(each.document)["_id"] for each in read] == list(range(3000))
    assert len({each.time for each in read}) > 3
    assert all(later.time >= earlier.time for earlier, later in pairwise(read))


def is_forgotten(client: Client, reader: RangeReader, time: int) -> bool:
    client.shop.other.insert_one({})
    try:
        list(reader.at("shop.other", time))
    except OperationFailure as error:
        return error.code == SNAPSHOT_TOO_OLD
    return False


def test_a_collection_is_followed_through_a_rename(
    mongodb_client: Client, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = mongodb_client[database_name]
    database.a.insert_many([{"_id": number} for number in range(10)])
    plan = planned(mongodb_client, f"{database_name}.a", monkeypatch)
    database.a.rename("b")
    database.a.insert_one({"_id": "another"})
    reader = RangeReader(mongodb_client)
    read = reader.read(plan.namespace, plan.uuid, None, None)
    assert {each.document for each in read} == documents(mongodb_client, f"{database_name}.b")
    database.b.drop()
    assert reader.read(plan.namespace, plan.uuid, None, None) == []
