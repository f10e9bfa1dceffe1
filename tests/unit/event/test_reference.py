"""The reference has a row for all that is made, and something that makes each row."""

from __future__ import annotations

from typing import Any

import bson
import pytest
from bson import Binary, Timestamp

from tailrace.event.build import build
from tailrace.event.commands import COMMANDS
from tailrace.event.mould import Moulds
from tailrace.event.noops import KINDS
from tailrace.event.reference import CLASSIC, FIELDS, REFERENCE, EventType, Source, of_source
from tailrace.event.shape import Shape
from tailrace.event.views import OPERATIONS
from tailrace.oplog.entry import Entry

NEWEST = (8, 2, 0)
UUID = Binary(bytes(16), 4)
SET = {"$v": 2, "diff": {"u": {"a": 1}}}
WRITTEN: dict[bytes, dict[str, Any]] = {
    b"insert": {"o": {"_id": 1}},
    b"update": {"o": SET, "o2": {"_id": 1}},
    b"replace": {"o": {"_id": 1}, "o2": {"_id": 1}},
    b"delete": {"o": {"_id": 1}},
}


def written(row: EventType, name: bytes) -> dict[str, Any]:
    """The smallest entry that makes a row's event."""
    text = name.decode()
    if row.source is Source.WRITE:
        return {"op": text, "ns": "d.c", **WRITTEN[row.operation]}
    if row.source is Source.VIEW:
        return {"op": text, "ns": "d.system.views", "o": {"_id": "d.view"}}
    if row.source is Source.COMMAND:
        full = text == "renameCollection"
        o = {text: "d.c" if full else "c", **({"to": "d.e"} if full else {})}
        return {"op": "c", "ns": "d.$cmd", "o": o, "o2": {}}
    return {"op": "n", "ns": "d.c", "o": {}, "o2": {text: "d.c", "reshardingUUID": UUID}}


def event_of(row: EventType, name: bytes) -> dict[str, Any]:
    times = {"ts": Timestamp(1, 1), "wall": bson.datetime_ms.DatetimeMS(0), "ui": UUID}
    entry = Entry(bson.encode({**written(row, name), **times}))
    event = build(entry, Moulds(Shape(NEWEST, expanded=True)))
    return bson.decode(event.raw)


ROWS = [
    pytest.param(row, name, id=f"{row.operation.decode()}-{name.decode()}-{row.source.name}")
    for row in REFERENCE
    for name in row.names
]


@pytest.mark.parametrize(("row", "name"), ROWS)
def test_each_row_is_built_from_what_names_it(row: EventType, name: bytes) -> None:
    event = event_of(row, name)
    assert event["operationType"] == row.operation.decode()
    shown = [field for field in row.fields() if field in event]
    assert list(event) == shown
    assert {"_id", "operationType", "clusterTime", *row.shows} <= set(event)


def test_nothing_is_built_that_has_no_row() -> None:
    def names(source: Source) -> set[bytes]:
        return {name for row in of_source(source) for name in row.names}

    assert set(COMMANDS) == names(Source.COMMAND)
    assert set(KINDS) == names(Source.NO_OP)
    assert set(OPERATIONS) == names(Source.VIEW)
    assert names(Source.WRITE) == {b"i", b"u", b"d"}
    assert [row.operation for row in of_source(Source.MADE)] == [b"invalidate"]


def test_every_field_of_a_row_is_one_that_events_have() -> None:
    for row in REFERENCE:
        assert {*row.shows, *row.may_show} <= set(FIELDS)
    assert {field for row in REFERENCE for field in row.fields()} == set(FIELDS)


def test_the_classic_events_are_those_of_the_reference_document() -> None:
    groups = {row.operation for row in REFERENCE if row.group in (1, 2, 3, 5)}
    assert groups == CLASSIC
