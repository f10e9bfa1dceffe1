"""Oplogs that no server wrote: as long, or with transactions as large, as a test asks for.

Entries have the form of 6.0's. One template is filled with the numbers of each entry, so
that millions of them cost seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bson
from bson import Binary, Int64, ObjectId, Timestamp
from bson.binary import UUID_SUBTYPE

UUID = Binary(bytes(range(16)), UUID_SUBTYPE)
LSID = {"id": Binary(bytes(16), UUID_SUBTYPE), "uid": Binary(bytes(32))}
START = 1_700_000_000
PER_SECOND = 1000
PIECE_ENTRIES = 1000
HOLE = ObjectId(b"\xa5" * 12)
HOLE_TIME = Timestamp(0x5A5A5A5A, 0x5B5B5B5B)


def _envelope(time: Timestamp) -> dict[str, Any]:
    return {"ts": time, "t": Int64(1), "v": Int64(2), "wall": bson.DatetimeMS(0)}


def write(op: str, time: Timestamp, key: ObjectId) -> bytes:
    """An insert, update or delete of one document of some 300 bytes."""
    o, o2 = {
        "i": ({"_id": key, "text": "x" * 200, "count": 1}, None),
        "u": ({"$v": 2, "diff": {"u": {"count": 2}}}, {"_id": key}),
        "d": ({"_id": key}, None),
    }[op]
    second = {} if o2 is None else {"o2": o2}
    head = {"op": op, "ns": "shop.orders", "ui": UUID, "o": o, **second}
    return bson.encode({**head, **_envelope(time)})


def long_log(entries: int) -> Iterator[bytes]:
    """Pieces of a log of inserts, updates and deletes, each document's one after the other."""
    templates = [write(op, HOLE_TIME, HOLE) for op in "iuid"]
    time_hole, key_hole = bson.encode({"": HOLE_TIME})[6:14], HOLE.binary
    piece: list[bytes] = []
    for number in range(entries):
        second, increment = divmod(number, PER_SECOND)
        time = (increment + 1).to_bytes(4, "little") + (START + second).to_bytes(4, "little")
        key = (number // len(templates)).to_bytes(12, "big")
        template = templates[number % len(templates)]
        piece.append(template.replace(time_hole, time).replace(key_hole, key))
        if len(piece) == PIECE_ENTRIES:
            yield b"".join(piece)
            piece.clear()
    yield b"".join(piece)


def transaction(time: int, entries: int, operations: int, document_bytes: int) -> Iterator[bytes]:
    """The entries of one transaction, the last of which ends it."""
    previous = {"ts": Timestamp(0, 0), "t": Int64(-1)}
    for part in range(entries):
        operation = {
            "op": "i",
            "ns": "shop.orders",
            "ui": UUID,
            "o": {"_id": ObjectId(), "data": bytes(document_bytes)},
        }
        o: dict[str, Any] = {"applyOps": [operation] * operations}
        if part < entries - 1:
            o["partialTxn"] = True
        elif entries > 1:
            o["count"] = Int64(entries * operations)
        at = Timestamp(time, part + 1)
        head = {"lsid": LSID, "txnNumber": Int64(1), "op": "c", "ns": "admin.$cmd", "o": o}
        yield bson.encode({**head, **_envelope(at), "prevOpTime": previous})
        previous = {"ts": at, "t": Int64(1)}
