"""Random pipelines over live streams: the engine's events are the server's, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from bson import Decimal128, Int64, Timestamp
from pymongo import MongoClient
from tests.support.bson_values import Values
from tests.support.change_streams import differences, engine_stream, now, server_stream, settle
from tests.support.effort import effort

import tailrace
from tailrace.embedded import ReplicaSet
from tailrace.event.shape import parse_version

Client = MongoClient[dict[str, Any]]
SEEDS = range(effort(6))
PIPELINES = 15
HANDS_OVER_SINCE = (5, 1, 0)


@pytest.fixture(scope="module")
def client(mongodb: ReplicaSet) -> Iterator[Client]:
    client = mongodb.client()
    yield client
    client.drop_database("test_pipelines")


def write(client: Client, seed: int) -> tuple[str, Timestamp, Timestamp]:
    """Writes of every kind with all types of values; their namespace, start and end."""
    collection = client["test_pipelines"][f"c{seed}"]
    values = Values(random.Random(seed))
    start = now(client)
    for number in range(12):
        fields = {name: values.value(2) for name in ("a", "b", "c") if values.rng.random() < 0.8}
        collection.insert_one({"_id": number, "n": number, **fields})
    collection.update_one({"_id": 1}, {"$set": {"a": [1, {"b": 2}], "d": 1.5}, "$unset": {"b": ""}})
    collection.update_many({"n": {"$gt": 8}}, {"$inc": {"n": Int64(1)}})
    collection.replace_one({"_id": 2}, {"n": Decimal128("2.5"), "a": {"b": [1, 2]}})
    collection.delete_many({"n": {"$lt": 2}})
    with client.start_session() as session, session.start_transaction():
        collection.insert_one({"_id": "t", "a": 1}, session=session)
        collection.delete_one({"_id": 5}, session=session)
    collection.drop()
    return f"test_pipelines.c{seed}", start, settle(client)


STAGES: tuple[dict[str, Any], ...] = (
    {"$match": {"operationType": {"$in": ["insert", "update", "delete"]}}},
    {"$match": {"operationType": {"$ne": "insert"}, "ns.coll": {"$exists": True}}},
    {"$match": {"documentKey._id": {"$gte": 3}}},
    {"$match": {"$or": [{"fullDocument.a": {"$type": "array"}}, {"documentKey._id": {"$mod": [2, 0]}}]}},
    {"$match": {"$expr": {"$gt": [{"$strLenCP": "$operationType"}, "$$most"]}}},
    {"$match": {"updateDescription.updatedFields.n": {"$exists": True}}},
    {"$match": {"fullDocument.n": {"$not": {"$gt": 6}}}},
    {"$project": {"fullDocument": 0, "ns.db": 0}},
    {"$project": {"operationType": 1, "fullDocument.a": 1, "k": "$documentKey._id"}},
    {"$project": {"operationType": 1, "fullDocument": {"a": {"b": 1}, "n": 1}, "ns": 1}},
    {"$project": {"clusterTime": 1, "operationType": 1, "x": ["$ns.coll", "$nothing", 1]}},
    {"$addFields": {"kind": {"$toUpper": "$operationType"}, "ns.full": {"$concat": ["$ns.db", ".", "$ns.coll"]}}},
    {"$set": {"fullDocument.a": {"$ifNull": ["$fullDocument.a", "none"]}, "t": {"$type": "$fullDocument.a"}}},
    {"$set": {"size": {"$cond": [{"$isArray": "$fullDocument.a"}, {"$size": "$fullDocument.a"}, "$$REMOVE"]}}},
    {"$set": {"fullDocument.n": {"$round": [{"$convert": {"input": "$fullDocument.n", "to": "double", "onError": 0}}, 1]}}},
    {"$unset": ["fullDocument.b", "lsid"]},
    {"$unset": "updateDescription.removedFields"},
    {"$replaceRoot": {"newRoot": {"_id": "$_id", "operationType": "$operationType", "d": "$fullDocument", "ns": "$ns"}}},
    {"$replaceWith": {"$mergeObjects": [{"$ifNull": ["$fullDocument", {}]}, {"_id": "$_id"}]}},
    {"$redact": {"$cond": [{"$eq": ["$operationType", "delete"]}, "$$PRUNE", "$$DESCEND"]}},
    {"$redact": {"$cond": [{"$isArray": "$b"}, "$$PRUNE", "$$DESCEND"]}},
    {"$set": {"day": {"$dateToString": {"date": "$wallTime", "format": "%Y", "onNull": "?"}}}},
    {"$set": {"hour": {"$dateTrunc": {"date": "$wallTime", "unit": "hour"}}}},
    {"$set": {"exp": {"$exp": {"$convert": {"input": "$fullDocument.n", "to": "decimal", "onError": 0}}}}},
    {"$project": {"_id": 0}},
    {"$set": {"_id": "$documentKey"}},
    {"$set": {"bad": {"$add": ["$operationType", 1]}}},
    {"$match": {"operationType": {"$regex": "^(in|de)", "$options": "i"}}},
    {"$set": {"token": "$_id._data", "fd": {"$objectToArray": "$documentKey"}}},
)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_any_pipeline_over_a_live_stream_is_the_servers(
    mongodb: ReplicaSet, client: Client, seed: int
) -> None:
    rng = random.Random(seed)
    namespace, start, until = write(client, seed)
    options = {"startAtOperationTime": start}
    for _ in range(PIPELINES):
        pipeline = rng.sample(STAGES, rng.randrange(1, 4))
        let = {"most": rng.choice([4, 6, {"$add": [2, 4]}])}
        # One by one: an error takes the batch with it that it ends.
        theirs = server_stream(
            client, namespace, options, until=until, pipeline=pipeline, let=let, batch_size=1
        )
        if parse_version(mongodb.version) < HANDS_OVER_SINCE and not all_here(pipeline, let):
            continue
        ours = engine_stream(client, namespace, options, until=until, pipeline=pipeline, let=let)
        difference = differences(ours.events, theirs.events)
        assert not difference, f"{pipeline} {let}: {difference}\n{ours.error} {theirs.error}"
        assert ours.error == theirs.error, pipeline
        if theirs.error is None:
            assert ours.token == theirs.token, pipeline
            assert ours.ended == theirs.ended, pipeline


def all_here(pipeline: list[dict[str, Any]], let: dict[str, Any]) -> bool:
    return all(step["runs"] == "here" for step in tailrace.explain_pipeline(pipeline, let=let))


def test_what_is_left_to_the_server_comes_in_its_place(mongodb: ReplicaSet, client: Client) -> None:
    namespace, start, until = write(client, 99)
    pipeline = [
        {"$match": {"operationType": {"$ne": "delete"}}},
        {"$set": {"year": {"$dateTrunc": {"date": "$wallTime", "unit": "year"}}}},
        {"$project": {"year": 1, "operationType": 1}},
    ]
    options = {"startAtOperationTime": start}
    theirs = server_stream(client, namespace, options, until=until, pipeline=pipeline)
    whole = engine_stream(client, namespace, options, until=until, pipeline=pipeline)
    one_by_one = engine_stream(
        client, namespace, options, until=until, pipeline=pipeline, max_events=1
    )
    assert not differences(whole.events, theirs.events)
    assert not differences(one_by_one.events, theirs.events)
    assert one_by_one.ended
    places = [bson.decode(event)["_id"] for event in theirs.events]
    assert one_by_one.tokens[: len(places)] == places


def test_a_collation_is_left_to_the_server(mongodb: ReplicaSet, client: Client) -> None:
    namespace, start, until = write(client, 98)
    pipeline = [{"$match": {"operationType": "INSERT"}}]
    seen = engine_stream(
        client,
        namespace,
        {"startAtOperationTime": start},
        until=until,
        pipeline=pipeline,
        collation={"locale": "en", "strength": 2},
    )
    assert set(seen.operations()) == {"insert"}
