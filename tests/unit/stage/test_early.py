"""A user's first query drops entries before their events are built, and none too many."""

from __future__ import annotations

from typing import Any

import bson
from bson import Binary, Timestamp

from tailrace.oplog.entry import Entry
from tailrace.query import Context, compile_pipeline
from tailrace.stage.early import EarlyMatch
from tailrace.stage.options import parse_options

VERSION = (6, 0, 5)
UUID = Binary(bytes(16), 4)


def entry(op: str, namespace: str = "shop.orders", at: int = 5, **fields: Any) -> bytes:
    common = {"op": op, "ns": namespace, "ui": UUID, **fields}
    return bson.encode({**common, "ts": Timestamp(at, 1), "t": 1, "v": 2})


ENTRIES = {
    "insert": entry("i", o={"_id": 1, "a": 1}),
    "other": entry("i", "shop.other", o={"_id": 1}),
    "update": entry("u", o={"$v": 2, "diff": {"u": {"a": 2}}}, o2={"_id": 2}),
    "replace": entry("u", o={"_id": 2, "a": 3}, o2={"_id": 2}),
    "delete": entry("d", o={"_id": 3}, at=9),
    "drop": entry("c", "shop.$cmd", o={"drop": "orders"}),
}


def passed(*stages: dict[str, Any]) -> set[str]:
    pipeline = compile_pipeline(stages, Context(VERSION))
    options = parse_options(None, "shop", VERSION)
    assert pipeline.early is not None
    early = EarlyMatch(pipeline.early, options)
    return {name for name, raw in ENTRIES.items() if list(early([Entry(raw)]))}


def test_an_operation_type_is_judged_by_the_entry() -> None:
    assert passed({"$match": {"operationType": "insert"}}) == {"insert", "other", "drop"}
    assert passed({"$match": {"operationType": "replace"}}) == {"replace", "drop"}


def test_a_namespace_is_judged_by_the_entry() -> None:
    everything = set(ENTRIES)
    assert passed({"$match": {"ns.coll": "orders"}}) == everything - {"other"}
    assert passed({"$match": {"ns": {"db": "shop", "coll": "other"}}}) == {"other", "drop"}


def test_keys_and_times_are_judged_by_the_entry() -> None:
    assert passed({"$match": {"documentKey._id": {"$gte": 2}}}) == {
        "update",
        "replace",
        "delete",
        "drop",
    }
    assert passed({"$match": {"clusterTime": {"$gt": Timestamp(7, 0)}}}) == {"delete", "drop"}


def test_conditions_on_documents_are_left_to_the_event() -> None:
    stages = [{"$match": {"$and": [{"operationType": "insert"}, {"fullDocument.a": 7}]}}]
    assert passed(*stages) == {"insert", "other", "drop"}


def test_a_query_behind_another_stage_says_nothing_early() -> None:
    stages = [{"$set": {"operationType": "x"}}, {"$match": {"operationType": "x"}}]
    assert compile_pipeline(stages, Context(VERSION)).early is None
