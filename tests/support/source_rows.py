"""Rows of the Spark source put back together: the server's own event, byte for byte.

Every field of an event stands in some column (``documents=bson``), so that nothing that
the source lost or changed can hide: what is made of a row must be what the server sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from tailrace.event.event import id_element
from tailrace.event.mould import ns_element
from tailrace.raw import document, element, spans, string_value
from tailrace.raw.elements import DATE, INT64, OBJECT, STRING, TIMESTAMP

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def events_of_rows(rows: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """The events that the rows were made of, as the server sends them."""
    return [event_of_row(row) for row in rows]


def event_of_row(row: Mapping[str, Any]) -> bytes:
    """One event, its fields in the server's order."""
    other = bytes(row["other"] or document())
    fields = spans(other)
    bits = fields.pop(b"_typeBits", None)
    type_bits = other[bits[1] + 5 : bits[2]] if bits else b""
    txn = row["txn"] or {}
    namespace = ".".join(filter(None, (row["db"], row["coll"]))).encode()
    parts = [
        *(element(name, kind, other[start:end]) for name, (kind, start, end) in fields.items()),
        *([element(b"txnNumber", INT64, _int64(txn["number"]))] if txn else []),
        *([element(b"lsid", OBJECT, bytes(txn["lsid"]))] if txn else []),
        id_element(row["token"].encode(), type_bits),
        element(b"operationType", STRING, string_value(row["operation"].encode())),
        element(b"clusterTime", TIMESTAMP, _int64(time_of_row(row))),
        element(b"wallTime", DATE, _int64(_millis(row["wall_time"]))),
        *_document(b"fullDocument", row["full_document"]),
        ns_element(namespace),
        *_document(b"documentKey", row["document_key"]),
        *_document(b"updateDescription", row["update_description"]),
        *_document(b"fullDocumentBeforeChange", row["before"]),
    ]
    return document(*parts)


def time_of_row(row: Mapping[str, Any], which: str = "cluster") -> int:
    """The cluster (or effective) time of a row."""
    return _seconds(row[f"{which}_time"]) << 32 | row[f"{which}_increment"]


def _document(name: bytes, value: bytes | None) -> list[bytes]:
    return [] if value is None else [element(name, OBJECT, bytes(value))]


def _millis(moment: datetime) -> int:
    since = _utc(moment) - EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _seconds(moment: datetime) -> int:
    return _millis(moment) // 1000


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _int64(number: int) -> bytes:
    return number.to_bytes(8, "little")
