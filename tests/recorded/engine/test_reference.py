"""Whatever a server or the engine ever showed stands in the reference, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.recordings import load, scenarios
from tests.support.testdata import shared_json

from tailrace.event.reference import ALWAYS, NEW_SHARD, NEW_SHARD_OLD_NAME, REFERENCE, EventType
from tailrace.event.shape import Version, parse_version
from tailrace.raw import spans, text_of

NEWEST: Version = (8, 2, 0)


def rows_of(operation: bytes) -> list[EventType]:
    named = NEW_SHARD if operation == NEW_SHARD_OLD_NAME else operation
    return [row for row in REFERENCE if row.operation == named]


def fits(row: EventType, fields: list[str], version: Version = NEWEST) -> bool:
    in_order = [field for field in row.fields(version) if field in fields]
    return in_order == fields and {*ALWAYS, *row.shows} <= set(fields)


def recorded() -> Iterator[tuple[str, str, bytes, list[str]]]:
    for version, scenario in scenarios():
        recording = load(version, scenario)
        changed = {
            f"{each['id']:02d}" for each in recording.meta["streams"] if each.get("pipeline")
        }
        for name in recording.names:
            stem = name.removesuffix(".bson").rpartition("-")[2]
            if not name.startswith("stream-") or stem in changed:
                continue
            for raw in recording.documents(name):
                found = spans(raw)
                operation = text_of(raw, found[b"operationType"])
                fields = [field.decode() for field in found]
                yield f"{version}-{scenario}-{name}", version, operation, fields


def vector_events() -> Iterator[dict[str, Any]]:
    for file in ("oplog_to_events", "transactions"):
        for row in shared_json(f"vectors/{file}.json")["vectors"]:
            yield from row["events"]
    for row in shared_json("vectors/captured_pairs.json")["vectors"]:
        yield row["event"]


def test_every_recorded_event_fits_a_row_of_its_release() -> None:
    count, kinds = 0, set()
    for name, version, operation, fields in recorded():
        release = parse_version(version)
        rows = [row for row in rows_of(operation) if release >= row.since]
        assert any(fits(row, fields, release) for row in rows), (name, operation, fields)
        count += 1
        kinds.add(operation)
    assert count > 5_000
    assert len(kinds) >= 15, kinds


def test_every_event_of_a_vector_fits_a_row() -> None:
    for event in vector_events():
        rows = rows_of(event["operationType"].encode())
        assert any(fits(row, list(event)) for row in rows), event
