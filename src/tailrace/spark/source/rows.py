"""Events become rows: Arrow columns, filled without decoding what is only copied.

A write's documents are slices of its log entry; they go into their column as they are
(``bson``) or as canonical Extended JSON (``json``). What is the same for all events of a
kind on a collection is looked up once, and numbers are computed by Arrow, a column at a
time. Anything but a plain write goes field by field.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.event.event import Event
from tailrace.oplog.entry import Place
from tailrace.raw import Span, document, element, spans, text_of
from tailrace.raw.elements import BINARY, NULL, OBJECT, STRING
from tailrace.raw.extended_json import canonical
from tailrace.spark.source.schema import arrow_schema

MAX_ROWS = 10_000
MAX_BYTES = 16 << 20
"""A batch of rows is handed over when it has one of these."""

_KEY_HEAD = b"\x03documentKey\x00"
_UPDATE_HEAD = b"\x03updateDescription\x00"
_KEY_HEAD_BYTES, _UPDATE_HEAD_BYTES = len(_KEY_HEAD), len(_UPDATE_HEAD)
_NS_HEAD_BYTES = len(b"\x03ns\x00")
_WITH_DOCUMENT = frozenset((b"insert", b"replace"))
_PLAIN = _WITH_DOCUMENT | {b"update", b"delete"}
_IN_COLUMNS = frozenset(
    (
        b"_id",
        b"operationType",
        b"clusterTime",
        b"wallTime",
        b"ns",
        b"documentKey",
        b"fullDocument",
        b"fullDocumentBeforeChange",
        b"updateDescription",
        b"txnNumber",
        b"lsid",
    )
)
"""The fields of an event that have a column; the others stand in ``other``."""

Kind = tuple[bytes, bytes, bytes | None, bytes | None]
"""Operation, database, collection, collection's UUID."""


class Rows:
    """The rows of one shard that are not handed over yet."""

    def __init__(self, shard: str, documents: str) -> None:
        self._shard = shard
        self._schema = arrow_schema(documents)
        self._as_json = documents == "json"
        self._kinds: dict[Kind, int] = {}
        self._plain_kinds: dict[tuple[bytes, bytes, bytes | None], int] = {}
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._tokens: list[bytes] = []
        self._times: list[int] = []
        self._walls: list[bytes | None] = []
        self._kind_of: list[int] = []
        self._keys: list[bytes | None] = []
        self._documents: list[bytes | None] = []
        self._updates: list[bytes | None] = []
        self._diffs: list[bytes | None] = []
        self._places: dict[int, Place] = {}
        self._befores: dict[int, bytes] = {}
        self._others: dict[int, bytes] = {}

    def batches(self, events: Iterable[Event]) -> Iterator[pa.RecordBatch]:
        """The events as batches of rows, each handed over as soon as it is full."""
        for event in events:
            self.add(event)
            if len(self._tokens) >= MAX_ROWS or self.size >= MAX_BYTES:
                yield self.take()
        if self._tokens:
            yield self.take()

    def add(self, event: Event) -> None:
        """One more row."""
        entry = event.entry
        operation = event.operation
        if entry.place is not None:
            self._places[len(self._tokens)] = entry.place
        plain = operation in _PLAIN and not entry.from_migrate
        if not (plain and self._add_plain(event, operation)):
            self._add_other(event)
        self._tokens.append(event.token)
        self._times.append(entry.time)
        self._walls.append(entry.wall)
        self.size += len(event.raw)

    def _add_plain(self, event: Event, operation: bytes) -> bool:
        entry, key = event.entry, event.key
        update = None
        end = event.image_at + _NS_HEAD_BYTES
        raw = event.raw
        if key is None or raw[event.image_at + 1 : end] != b"ns\x00":
            return False
        end += int.from_bytes(raw[end : end + 4], "little") + _KEY_HEAD_BYTES + len(key)
        if operation == b"update":
            start = end + _UPDATE_HEAD_BYTES
            if raw[end:start] != _UPDATE_HEAD:
                return False
            end = start + int.from_bytes(raw[start : start + 4], "little")
            update = raw[start:end]
        if end + 1 != len(raw):
            return False
        if event.type_bits:
            self._others[len(self._tokens)] = document(_type_bits(event.type_bits))
        known = (operation, entry.namespace, entry.uuid)
        number = self._plain_kinds.get(known)
        if number is None:
            database, _, name = entry.namespace.partition(b".")
            number = self._plain_kinds[known] = self._kind((operation, database, name, entry.uuid))
        self._kind_of.append(number)
        self._keys.append(key)
        self._documents.append(entry.o if operation in _WITH_DOCUMENT else None)
        self._updates.append(update)
        self._diffs.append(entry.o if update is not None else None)
        return True

    def _add_other(self, event: Event) -> None:
        raw, entry, row = event.raw, event.entry, len(self._tokens)
        fields = spans(raw)
        update = _document_in(raw, fields, b"updateDescription")
        self._keys.append(_document_in(raw, fields, b"documentKey"))
        self._documents.append(_document_in(raw, fields, b"fullDocument"))
        self._updates.append(update)
        self._diffs.append(entry.o if update is not None else None)
        database, name = _names(raw, fields)
        self._kind_of.append(self._kind((event.operation, database, name, entry.uuid)))
        before = _document_in(raw, fields, b"fullDocumentBeforeChange")
        if before is not None:
            self._befores[row] = before
        others = [
            element(name, kind, raw[start:end])
            for name, (kind, start, end) in fields.items()
            if name not in _IN_COLUMNS
        ]
        if event.type_bits:
            others.append(_type_bits(event.type_bits))
        if others:
            self._others[row] = document(*others)

    def _kind(self, kind: Kind) -> int:
        return self._kinds.setdefault(kind, len(self._kinds))

    def take(self) -> pa.RecordBatch:
        """The rows so far, as one batch; the next one begins empty."""
        count = len(self._tokens)
        times = pa.array(self._times, pa.uint64())
        effective = times
        ordinals = pa.repeat(pa.scalar(0, pa.int32()), count)
        if self._places:
            found = [self._places.get(row) for row in range(count)]
            ordinals = pa.array([place.index if place else 0 for place in found], pa.int32())
            effective = pa.array(
                [place.effective if place else self._times[row] for row, place in enumerate(found)],
                pa.uint64(),
            )
        kinds = pa.array(self._kind_of, pa.int32())
        columns = [
            pa.repeat(pa.scalar(self._shard), count),
            pa.array(self._tokens, pa.string()),
            *_seconds_and_increments(times),
            *_seconds_and_increments(effective),
            ordinals,
            _walls(self._walls),
            *(column.take(kinds) for column in self._kind_columns()),
            self._document_column(self._keys),
            self._document_column(self._documents),
            self._sparse_column(self._befores, count),
            self._document_column(self._updates),
            self._document_column(self._diffs),
            self._transactions(count),
            self._sparse_column(self._others, count),
        ]
        self._clear()
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _kind_columns(self) -> Iterator[pa.Array]:
        operations, databases, names, uuids = zip(*self._kinds, strict=True)
        for texts in (operations, databases, names):
            yield pa.array(texts, pa.string())
        yield pa.array([None if raw is None else str(uuid.UUID(bytes=raw)) for raw in uuids])

    def _document_column(self, values: list[bytes | None]) -> pa.Array:
        if not self._as_json:
            return pa.array(values, pa.binary())
        return pa.array([None if raw is None else canonical(raw) for raw in values], pa.string())

    def _sparse_column(self, values: dict[int, bytes], count: int) -> pa.Array:
        if not values:
            return pa.nulls(count, pa.string() if self._as_json else pa.binary())
        return self._document_column([values.get(row) for row in range(count)])

    def _transactions(self, count: int) -> pa.Array:
        kind = self._schema.field("txn").type
        shown = {row: p for row, p in self._places.items() if p.lsid or p.txn_number}
        if not shown:
            return pa.nulls(count, kind)
        places = [shown.get(row) for row in range(count)]
        made: dict[bytes, Any] = {}
        for place in shown.values():
            if place.lsid and place.lsid not in made:
                made[place.lsid] = canonical(place.lsid) if self._as_json else place.lsid
        lsids = [made.get(place.lsid) if place and place.lsid else None for place in places]
        numbers = [_signed(place.txn_number) if place else None for place in places]
        return pa.StructArray.from_arrays(
            [pa.array(lsids, kind.field("lsid").type), pa.array(numbers, pa.int64())],
            fields=list(kind),
            mask=pa.array([place is None for place in places]),
        )


def _seconds_and_increments(times: pa.Array) -> tuple[pa.Array, pa.Array]:
    seconds = pc.shift_right(times, pa.scalar(32, pa.uint64())).cast(pa.int64())
    moments = pc.multiply(seconds, 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    increments = pc.bit_wise_and(times, pa.scalar(0xFFFF_FFFF, pa.uint64())).cast(pa.int64())
    return moments, increments


def _walls(walls: list[bytes | None]) -> pa.Array:
    """Milliseconds as they stand in the log."""
    if None in walls:
        found = [
            None if raw is None else int.from_bytes(raw, "little", signed=True) for raw in walls
        ]
        millis = pa.array(found, pa.int64())
    else:
        joined = pa.py_buffer(b"".join(raw for raw in walls if raw is not None))
        millis = pa.Array.from_buffers(pa.int64(), len(walls), [None, joined])
    return pc.multiply(millis, 1000).cast(pa.timestamp("us", tz="UTC"))


def _type_bits(bits: bytes) -> bytes:
    return element(b"_typeBits", BINARY, len(bits).to_bytes(4, "little") + b"\x00" + bits)


def _signed(raw: bytes | None) -> int | None:
    return None if raw is None else int.from_bytes(raw, "little", signed=True)


def _document_in(raw: bytes, fields: dict[bytes, Span], name: bytes) -> bytes | None:
    span = fields.get(name)
    if span is None or span[0] == NULL:
        return None
    return raw[span[1] : span[2]]


def _names(raw: bytes, fields: dict[bytes, Span]) -> tuple[bytes, bytes | None]:
    """The database and collection of an event's ``ns``."""
    span = fields.get(b"ns")
    if span is None or span[0] != OBJECT:
        return b"", None
    inside = spans(raw, span[1])
    found = [
        text_of(raw, part) if (part := inside.get(name)) and part[0] == STRING else None
        for name in (b"db", b"coll")
    ]
    return found[0] or b"", found[1]
