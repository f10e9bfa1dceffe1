"""Malformed stages are refused when a stream is opened, with the server's codes."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Decimal128, Regex
from pymongo.errors import OperationFailure

from tailrace.embedded import ReplicaSet
from tailrace.errors import ServerError
from tailrace.event.shape import parse_version
from tailrace.query import Context, compile_pipeline

SPECIFICATIONS: dict[str, list[Any]] = {
    "$project": [
        5, "x", {}, {"a": 1, "b": 0}, {"a": 0, "b": 1}, {"a": "$b", "c": 0}, {"a": 0, "c": "$b"},
        {"_id": 0}, {"_id": 1}, {"a": {}}, {"a": {"b": {}}}, {"a": 1, "a.b": 1}, {"a.b": 1, "a": 1},
        {"a": {"b": 1}, "a.c": 1}, {"a": {"b": {"c": 1}}, "a.b.d": 1}, {"a.b": 1, "a.b.c": 1},
        {"a..b": 1}, {"a.": 1}, {".a": 1}, {"$a": 1}, {"a.$b": 1}, {"a.$": 1}, {"": 1},
        {"a": {"$add": [1], "b": 1}}, {"a": {"b": 1, "$add": [1]}}, {"a": {"$foo": 1}},
        {"a": {"$add": 1, "$sum": 2}}, {"a": {"b": "$c"}}, {"a": [1, "$b"]}, {"a": True}, {"a": None},
        {"a": "x"}, {"a": "$"}, {"a": "$$"}, {"a": "$$x"}, {"a": "$b."}, {"a": "$b..c"},
        {"a": "$$ROOT.b"}, {"a": "$$NOPE"}, {"_id.x": 1, "a": 0}, {"a": {"$slice": ["$b", 1]}},
        {"_id": 0, "a": 0}, {"_id": 0, "a": 1}, {"_id": 1, "a": 0}, {"_id": "$x", "a": 0},
        {"a": {"b": 0, "c": 1}}, {"a": {"b": 0}, "c": 1}, {"a": float("nan")}, {"a": Decimal128("0")},
    ],
    "$addFields": [
        5, {}, {"a": {}}, {"a": {"b": {}}}, {"a": 1, "a.b": 1}, {"a.b": 1, "a": 1}, {"$a": 1},
        {"a.$b": 1}, {"a..b": 1}, {"": 1}, {"a": {"$add": [1, 2], "b": 1}}, {"a": {"$foo": 1}},
        {"a": {"b": 1, "$add": [1]}}, {"a": "$$x"}, {"a": {"b": 1}}, {"a": [{"$add": ["x", 1]}]},
    ],
    "$unset": [5, {}, [], "", "a", ["a", "a"], ["a", "a.b"], ["a", 5], "$a", "a..b", ["_id"]],
    "$replaceRoot": [5, {}, {"newRoot": 5}, {"newRoot": "$a"}, {"newRoot": {}}, {"foo": 1}],
    "$replaceWith": [5, "$a", {}, {"a": 1}, "abc", {"$a": 1}],
    "$redact": ["$$KEEP", "$$PRUNE", "$$DESCEND", 5, "x", {"$cond": [1, 2]}, "$$FOO"],
    "$match": [
        5, [], {"$foo": 1}, {"a": {"$foo": 1}}, {"a": {"$in": 5}}, {"$and": []}, {"$and": 5},
        {"$and": [5]}, {"$or": [{}]}, {"a": {"$not": 5}}, {"a": {"$not": {}}}, {"$where": "1"},
        {"$text": {"$search": "x"}}, {"$expr": 5}, {"$expr": "$$x"}, {"a": {"$regex": "("}},
        {"a": {"$regex": "a", "$options": "q"}}, {"a": {"$options": "i"}}, {"a": Regex("a", "i")},
        {"a": {"$size": "x"}}, {"a": {"$size": -1}}, {"a": {"$elemMatch": 5}}, {"$alwaysTrue": 2},
        {"a": {"$elemMatch": {"$where": "1"}}}, {"$alwaysFalse": 1}, {"$comment": "x"},
        {"a": {"$comment": "x"}}, {"a": {"$near": [1, 2]}}, {"a": {"$eq": 1, "b": 2}},
        {"a": {"b": 1, "$eq": 2}}, {"$nor": []}, {"a": {"$type": "foo"}}, {"a": {"$type": []}},
        {"a": {"$mod": [0, 1]}}, {"a": {"$ne": Regex("a")}}, {"a": {"$gt": Regex("a")}},
        {"a": {"$all": 5}}, {"a": {"$nin": [Regex("b")]}}, {"a": {"$expr": 1}}, {"a": {"$and": []}},
    ],
    "$fill": [
        5, {}, {"output": {}}, {"output": {"a": {"value": 1}}},
        {"output": {"a": {"method": "linear"}}, "sortBy": {"a": 1}},
    ],
    "$limit": [1], "$group": [{"_id": 1}], "$lookup": [{"from": "b", "as": "c", "pipeline": []}],
    "$nothing": [1],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_a_stage_is_taken_or_refused_as_the_server_does(mongodb: ReplicaSet, name: str) -> None:
    context = Context(parse_version(mongodb.version))
    database = mongodb.client()["refusals"]
    for specification in SPECIFICATIONS[name]:
        stage = {name: specification}
        try:
            answer = database.command(
                "aggregate",
                "c",
                pipeline=[{"$changeStream": {}}, stage],
                cursor={"batchSize": 0},
            )
            database.command("killCursors", "c", cursors=[answer["cursor"]["id"]])
            theirs = None
        except OperationFailure as error:
            theirs = error.code, (error.details or {}).get("codeName")
        try:
            compile_pipeline([stage], context)
            ours = None
        except ServerError as error:
            ours = error.code, error.code_name
        assert ours == theirs, stage
