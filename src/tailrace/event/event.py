"""An event on its way to the consumer, and how its bytes are put together.

``assemble`` writes final BSON in the server's field order (facts/server-semantics,
section 3.6): whatever stands before ``_id``, then token, type and time, then the
optional slots. Documents are copied as bytes. Later stages may add an image at
``image_at`` or at the end; they never decode an event to do so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tailrace.oplog.entry import Entry
from tailrace.raw import element, string_value
from tailrace.raw.elements import BINARY, OBJECT, STRING, TIMESTAMP


@dataclass(slots=True)
class Event:
    """One event: its bytes, its token and what later stages ask about it."""

    operation: bytes
    raw: bytes
    token: bytes
    type_bits: bytes
    entry: Entry
    image_at: int
    key: bytes | None = None
    """The ``documentKey`` of a write; None for everything else."""
    is_control: bool = False
    """Whether only whoever merges shards may see it."""

    @property
    def time(self) -> int:
        """The cluster time, as seconds << 32 | increment."""
        return self.entry.time

    def with_full_document(self, value: bytes | None) -> None:
        """Put ``fullDocument`` into its slot; None is null."""
        added = _FULL_DOCUMENT_NULL if value is None else b"\x03fullDocument\x00" + value
        self._insert(self.image_at, added)

    def with_before_image(self, value: bytes | None, *, at_the_end: bool = True) -> None:
        """Add ``fullDocumentBeforeChange``; None is null. Before 6.0 it stands before ``ns``."""
        added = _BEFORE_NULL if value is None else b"\x03fullDocumentBeforeChange\x00" + value
        self._insert(len(self.raw) - 1 if at_the_end else self.image_at, added)

    def _insert(self, at: int, added: bytes) -> None:
        raw = self.raw
        size = len(raw) + len(added)
        self.raw = b"".join((size.to_bytes(4, "little"), raw[4:at], added, raw[at:]))


_FULL_DOCUMENT_NULL = b"\x0afullDocument\x00"
_BEFORE_NULL = b"\x0afullDocumentBeforeChange\x00"


def assemble(
    operation: bytes,
    entry: Entry,
    token: tuple[bytes, bytes],
    *,
    before: bytes = b"",
    head: bytes,
    wall: bytes,
    body: bytes,
    plain: bool = False,
) -> Event:
    """An event from its parts: ``head`` follows the time, ``body`` follows the image's slot.

    A ``plain`` event shows nothing of its entry's transaction.
    """
    data, type_bits = token
    place = None if plain else entry.place
    if place is not None:
        before += transaction_fields(entry)
    front = b"".join(
        (
            before,
            id_element(data, type_bits),
            b"\x02operationType\x00",
            string_value(operation),
            b"\x11clusterTime\x00",
            entry.time.to_bytes(8, "little"),
            commit_timestamp(entry) if place is not None else b"",
            head,
            wall,
        )
    )
    size = len(front) + len(body) + 5
    raw = b"".join((size.to_bytes(4, "little"), front, body, b"\x00"))
    return Event(operation, raw, data, type_bits, entry, len(front) + 4)


def id_element(data: bytes, type_bits: bytes) -> bytes:
    """The ``_id`` element of a token."""
    if not type_bits:
        return b"%b%b\x00\x00" % (_id_head(len(data)), data)
    bits = len(type_bits).to_bytes(4, "little") + b"\x00" + type_bits
    body = element(b"_data", STRING, string_value(data)) + element(b"_typeBits", BINARY, bits)
    return element(b"_id", OBJECT, (len(body) + 5).to_bytes(4, "little") + body + b"\x00")


@lru_cache(maxsize=4096)
def _id_head(size: int) -> bytes:
    """What stands before the digits of a token of this many."""
    inner = (size + 1).to_bytes(4, "little")
    return b"\x03_id\x00%b\x02_data\x00%b" % ((size + 17).to_bytes(4, "little"), inner)


def transaction_fields(entry: Entry) -> bytes:
    """``txnNumber`` and ``lsid``, which an operation of a transaction shows first."""
    place = entry.place
    if place is None:
        return b""
    number, lsid = place.txn_number, place.lsid
    return (b"\x12txnNumber\x00" + number if number else b"") + (
        b"\x03lsid\x00" + lsid if lsid else b""
    )


def commit_timestamp(entry: Entry) -> bytes:
    """``commitTimestamp``, where the stream asked for it and the transaction was prepared."""
    place = entry.place
    if place is None or place.commit_time is None:
        return b""
    return element(b"commitTimestamp", TIMESTAMP, place.commit_time.to_bytes(8, "little"))
