"""Inserts of servers before 5.3: their shard key is known to the caller alone."""

from __future__ import annotations

import uuid
from typing import Any

import bson
import pytest
from bson import Timestamp

import tailrace
from tailrace.errors import OptionError

COLLECTION = uuid.UUID("3b5bdcde-3a85-4ef0-9a3b-9b8a2f0d5f11")


def insert(document: dict[str, Any]) -> bytes:
    entry = {
        "ts": Timestamp(100, 1),
        "op": "i",
        "ns": "shop.orders",
        "ui": bson.Binary.from_uuid(COLLECTION),
        "o": document,
    }
    return bson.encode(entry)


def key_of(document: dict[str, Any], shard_keys: Any) -> list[tuple[str, Any]]:
    events = tailrace.replay(insert(document), server_version="4.4.2", shard_keys=shard_keys)
    return list(bson.decode(next(events).raw)["documentKey"].items())


@pytest.mark.parametrize("name", [COLLECTION, str(COLLECTION), COLLECTION.bytes])
def test_the_shard_key_comes_before_the_id(name: Any) -> None:
    document = {"_id": 1, "a": {"b": 2}, "c": 3}
    key = {"c": 1, "a.b": "hashed"}
    assert key_of(document, {name: key}) == [("c", 3), ("a.b", 2), ("_id", 1)]


def test_fields_that_a_document_lacks_are_left_out() -> None:
    document = {"_id": 1, "a": [{"b": 2}]}
    assert key_of(document, {COLLECTION: ["a.b", "c"]}) == [("_id", 1)]


def test_an_id_in_the_shard_key_keeps_its_place() -> None:
    assert key_of({"_id": 1, "c": 3}, {COLLECTION: ["_id", "c"]}) == [("_id", 1), ("c", 3)]


@pytest.mark.parametrize("bad", [{"no uuid": {"a": 1}}, {COLLECTION: []}, {7: ["a"]}])
def test_what_is_no_shard_key_is_refused(bad: Any) -> None:
    with pytest.raises(OptionError) as refused:
        key_of({"_id": 1}, bad)
    assert refused.value.option == "shard_keys"
