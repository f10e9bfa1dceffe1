"""One oplog entry, seen through its raw BSON.

An ``Entry`` knows where its fields lie and decodes only what is asked for. The
operations inside a transaction's ``applyOps`` are entries as well: they carry a
``Place`` that says where in which transaction they stood, and take time and wall
clock from the entry that ended it.

Format: facts/server-semantics, section 3. Nothing here knows what an event is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from struct import unpack_from

from tailrace.errors import BadBson
from tailrace.oplog.plain import plain_write
from tailrace.raw import Span, document, element, iter_spans, spans, string_value, text_of
from tailrace.raw.elements import ARRAY, BOOL, DATE, DOUBLE, INT32, INT64, OBJECT, STRING, TIMESTAMP

WRITES = frozenset((b"i", b"u", b"d"))
NULL_TIME = 0
"""The ``ts`` in the ``prevOpTime`` of a transaction's first entry."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation stood in its transaction.

    ``index`` runs over all operations of the transaction; ``apply_index`` and
    ``apply_time`` say where in which ``applyOps`` entry it was (the key of its
    pre-image). ``lsid`` and ``txn_number`` are raw values, None where not shown.
    """

    index: int
    apply_index: int
    apply_time: int
    lsid: bytes | None = None
    txn_number: bytes | None = None
    commit_time: int | None = None
    effective: int = 0
    """When a snapshot read begins to see it: before the entry's own time, if prepared."""


class Entry:
    """A view over one entry's bytes.

    ``o`` and ``o2`` are a write's documents, None for commands and no-ops, whose
    parts are asked for by name.
    """

    __slots__ = (
        "_fields",
        "from_migrate",
        "namespace",
        "o",
        "o2",
        "op",
        "place",
        "raw",
        "time",
        "uuid",
        "wall",
    )

    op: bytes
    namespace: bytes
    uuid: bytes | None
    """The collection's UUID, 16 bytes."""
    o: bytes | None
    o2: bytes | None
    time: int
    wall: bytes | None
    from_migrate: bool
    """Whether a migration between shards wrote it."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.place: Place | None = None
        self._fields: dict[bytes, Span] | None = None
        plain = plain_write(raw)
        if plain is None:
            self._read_fields(raw)
        else:
            self.op, self.namespace, self.uuid, self.o, self.o2, self.time, self.wall = plain
            self.from_migrate = False

    def _read_fields(self, raw: bytes) -> None:
        fields = self._fields = spans(raw)
        try:
            kind, start, end = fields[b"ts"]
            self.time = int.from_bytes(raw[start:end], "little")
            _, start, end = fields[b"op"]
            self.op = raw[start + 4 : end - 1]
            _, start, end = fields[b"ns"]
            self.namespace = raw[start + 4 : end - 1]
        except KeyError as missing:
            raise BadBson(f"an oplog entry without {missing}", offset=0) from None
        if kind != TIMESTAMP:
            raise BadBson("an oplog entry whose ts is not a timestamp", offset=start)
        wall = fields.get(b"wall")
        self.wall = raw[wall[1] : wall[2]] if wall and wall[0] == DATE else None
        self._read_rest()

    def _read_rest(self) -> None:
        """What outer entries and the operations of transactions have alike."""
        uuid = self.fields.get(b"ui")
        self.uuid = self.raw[uuid[1] + 5 : uuid[2]] if uuid else None
        is_write = self.op in WRITES
        self.o = self.sub_document(b"o") if is_write else None
        self.o2 = self.sub_document(b"o2") if is_write else None
        self.from_migrate = self.flag(b"fromMigrate")

    @classmethod
    def inner(cls, raw: bytes, outer: Entry, place: Place) -> Entry:
        """An operation from the ``applyOps`` of a transaction that ``outer`` ends."""
        entry = object.__new__(cls)
        entry.raw = raw
        entry._fields = None
        entry.place = place
        plain = plain_write(raw, inner=True)
        if plain is None:
            entry.op = entry.text(b"op") or b""
            entry.namespace = entry.text(b"ns") or b""
            entry._read_rest()
        else:
            entry.op, entry.namespace, entry.uuid, entry.o, entry.o2, _, _ = plain
            entry.from_migrate = False
        entry.time = outer.time
        entry.wall = outer.wall
        return entry

    def made_up(self, op: bytes, second: bytes, index: int) -> Entry:
        """An operation that the server adds to this one's transaction: ``o2`` at an index."""
        raw = document(element(b"op", STRING, string_value(op)), element(b"o2", OBJECT, second))
        place = self.place
        return Entry.inner(raw, self, replace(place, index=index) if place else Place(index, 0, 0))

    @property
    def effective(self) -> int:
        """The time from which on a snapshot read sees what this wrote."""
        return self.place.effective if self.place else self.time

    @property
    def fields(self) -> dict[bytes, Span]:
        """Where each field lies."""
        if self._fields is None:
            self._fields = spans(self.raw)
        return self._fields

    def value(self, name: bytes) -> bytes | None:
        """A field's raw value, or None."""
        span = self.fields.get(name)
        return None if span is None else self.raw[span[1] : span[2]]

    def text(self, name: bytes) -> bytes | None:
        """A string field's UTF-8 bytes, or None."""
        span = self.fields.get(name)
        return text_of(self.raw, span) if span and span[0] == STRING else None

    def sub_document(self, name: bytes) -> bytes | None:
        """A field's bytes where it is a document, else None."""
        span = self.fields.get(name)
        return self.raw[span[1] : span[2]] if span and span[0] == OBJECT else None

    def flag(self, name: bytes) -> bool:
        """Whether a field is there and ``true``."""
        return _is_true(self.raw, self.fields.get(name))

    @property
    def command(self) -> bytes:
        """The first field's name of ``o``: a command's kind."""
        span = self.fields.get(b"o")
        if span is None or span[0] != OBJECT:
            return b""
        return self.raw[span[1] + 5 : self.raw.find(0, span[1] + 5)]

    @property
    def body(self) -> dict[bytes, Span]:
        """The spans of ``o``, within the entry's bytes."""
        return self._inside(b"o")

    @property
    def second(self) -> dict[bytes, Span]:
        """The spans of ``o2``, within the entry's bytes."""
        return self._inside(b"o2")

    @property
    def previous(self) -> int | None:
        """The ``ts`` of ``prevOpTime``: 0 for a chain's first entry, None without the field."""
        span = self.fields.get(b"prevOpTime")
        if span is None or span[0] != OBJECT:
            return None
        inner = spans(self.raw, span[1]).get(b"ts")
        return int.from_bytes(self.raw[inner[1] : inner[2]], "little") if inner else None

    def apply_ops(self) -> Iterator[bytes]:
        """The bytes of each operation in ``o.applyOps``."""
        span = self.body.get(b"applyOps")
        if span is None or span[0] != ARRAY:
            return
        for _, (kind, start, end) in iter_spans(self.raw, span[1]):
            if kind == OBJECT:
                yield self.raw[start:end]

    @property
    def is_partial(self) -> bool:
        """Whether more entries of the same transaction must follow."""
        return _is_true(self.raw, self.body.get(b"partialTxn"))

    @property
    def is_prepare(self) -> bool:
        """Whether this ends a transaction that is prepared and not yet decided."""
        return _is_true(self.raw, self.body.get(b"prepare"))

    @property
    def is_commit(self) -> bool:
        """Whether this commits a prepared transaction."""
        return number_of(self.raw, self.body.get(b"commitTransaction")) == 1

    def _inside(self, name: bytes) -> dict[bytes, Span]:
        span = self.fields.get(name)
        return spans(self.raw, span[1]) if span and span[0] == OBJECT else {}


def number_of(buffer: bytes, span: Span | None) -> int | float | None:
    """A number's value, or None for anything else."""
    if span is None:
        return None
    kind, start, end = span
    if kind in (INT32, INT64):
        return int.from_bytes(buffer[start:end], "little", signed=True)
    if kind == DOUBLE:
        value: float = unpack_from("<d", buffer, start)[0]
        return value
    return None


def _is_true(buffer: bytes, span: Span | None) -> bool:
    return span is not None and span[0] == BOOL and buffer[span[1]] == 1
