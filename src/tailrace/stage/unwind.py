"""Transactions taken apart: the operations inside ``applyOps``, in their order.

A transaction may span entries, each pointing to the one before it; the walk goes
back from the entry that ends it to the first, then forwards, one entry at a time, so
that a transaction of any size needs the memory of a few entries. Every operation
counts in ``txnOpIndex``, also those that the stream does not show. An entry that left
the log makes the whole transaction ChangeStreamHistoryLost: never a part of one.

Rules: facts/server-semantics, section 3.7, and facts/sharded, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailrace.errors import BadBson, ServerError
from tailrace.event.noops import end_of_transaction
from tailrace.event.shape import Shape
from tailrace.oplog.entry import NULL_TIME, Entry, Place, number_of
from tailrace.raw.elements import INT64, TIMESTAMP
from tailrace.stage.lookups import Lookups
from tailrace.stage.match import TRANSACTION_ENDS, OplogMatch

HISTORY_LOST = 286
NOOP_INSIDE = 5543809
KEPT_BYTES = 1 << 20
"""Entries of the walk back that are kept for the way forwards; the rest is read again."""


class UnwindTransactions:
    """Replaces the entry that ends a transaction by the operations in it."""

    def __init__(self, match: OplogMatch, shape: Shape, lookups: Lookups) -> None:
        self._match = match
        self._shape = shape
        self._lookups = lookups

    def __call__(self, source: Iterable[Entry]) -> Iterator[Entry]:
        """Pass on plain entries, and each transaction's operations lazily."""
        for entry in source:
            if entry.op == b"c" and entry.command in TRANSACTION_ENDS:
                yield from self._operations(entry)
                self._lookups.forget(entry)
            else:
                yield entry

    def _operations(self, last: Entry) -> Iterator[Entry]:
        separate = _applied_separately(last)
        lsid, number = (None, None) if separate else _identity(last, self._shape)
        decided = _commit_timestamp(last)
        commit_time = decided if self._shape.commit_timestamps else None
        effective = last.time if decided is None else decided
        touched: set[bytes] = set()
        index = 0
        for part in self._parts(last, separate):
            for at, raw in enumerate(part.apply_ops()):
                place = Place(index, at, part.time, lsid, number, commit_time, effective)
                entry = Entry.inner(raw, last, place)
                index += 1
                if entry.op == b"n":
                    raise ServerError("a no-op inside a transaction", code=NOOP_INSIDE)
                if self._shape.end_of_transaction:
                    touched.add(entry.namespace)
                if self._match.operation(entry) and self._match.shows(entry):
                    yield entry
            del part  # it may be as large as the next one
        ends_itself = last.command == b"applyOps"
        if lsid and number and ends_itself and any(map(self._match.touches, touched)):
            place = Place(0, 0, last.time, lsid, number, effective=effective)
            first = Entry.inner(last.raw, last, place)
            yield end_of_transaction(first, index, sorted(touched))

    def _parts(self, last: Entry, separate: bool) -> Iterator[Entry]:
        """The transaction's ``applyOps`` entries, first to last."""
        ends_itself = last.command == b"applyOps"
        if separate or not last.previous:
            if ends_itself:
                yield last
            return
        kept = self._walk_back(last.previous)
        while kept:
            time, part = kept.popitem()
            yield part or self._entry(time)
            del part  # it may be as large as the next one
        if ends_itself:
            yield last

    def _walk_back(self, time: int | None) -> dict[int, Entry | None]:
        """The times from a transaction's last earlier entry to its first, and a few entries."""
        kept: dict[int, Entry | None] = {}
        kept_bytes = 0
        while time is not None and time != NULL_TIME:
            part = self._entry(time)
            kept_bytes += len(part.raw)
            kept[time] = part if kept_bytes <= KEPT_BYTES else None
            if part.previous is not None and part.previous >= time:
                raise BadBson("a transaction that does not go back in time", offset=0)
            time = part.previous
        return kept

    def _entry(self, time: int) -> Entry:
        raw = self._lookups.entry(time)
        if raw is None:
            raise ServerError(
                "an earlier entry of a transaction is no longer in the oplog",
                code=HISTORY_LOST,
                time=time,
            )
        return Entry(raw)


def _commit_timestamp(last: Entry) -> int | None:
    """When a prepared transaction was committed for all shards; None for any other."""
    span = last.body.get(b"commitTimestamp")
    if span is None or span[0] != TIMESTAMP:
        return None
    return int.from_bytes(last.raw[span[1] : span[2]], "little")


def _applied_separately(entry: Entry) -> bool:
    """Whether the operations share an entry but no transaction: batched retryable inserts."""
    return bool(number_of(entry.raw, entry.fields.get(b"multiOpType")))


def _identity(entry: Entry, shape: Shape) -> tuple[bytes | None, bytes | None]:
    """``lsid`` and ``txnNumber`` as the events show them."""
    number = entry.fields.get(b"txnNumber")
    lsid = entry.sub_document(b"lsid") if b"lsid" in entry.fields else None
    shown = entry.value(b"txnNumber") if number and number[0] == INT64 else None
    return lsid, shown
