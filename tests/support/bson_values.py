"""Random BSON values of every type, from a seeded generator, and names to put them under."""

from __future__ import annotations

import random
import re
import struct
import uuid
from dataclasses import dataclass
from typing import Any

import bson
from bson import (
    Binary,
    Code,
    DBRef,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from bson.binary import OLD_UUID_SUBTYPE, UUID_SUBTYPE
from bson.datetime_ms import DatetimeMS
from bson.raw_bson import RawBSONDocument

from tailrace.raw import document, element, iter_spans, string_value
from tailrace.raw.elements import ARRAY, DB_POINTER, OBJECT, SYMBOL, UNDEFINED

PLAIN_NAMES = ["a", "b", "c", "tags", "count", "deep", "x1"]
ODD_NAMES = ["0", "1", "01", "007", "", " ", "naïve", "日本", "with space", "a-b", "_", "x" * 60]
DOTTED_NAMES = ["a.b", "a.0", ".", "..", "0.1", "$dollar", "$set", "a.$b"]
"""Names that only inserts, replacements and ``$setField`` can write."""
STRINGS = ["", "a", "A", "nul\x00inside", "é", "日本語", "z" * 300, "$a", "a.b"]
DECIMALS = [
    "0",
    "-0",
    "1",
    "1.0",
    "1.00",
    "0.1",
    "-7.5E-10",
    "9.999E+30",
    "NaN",
    "Infinity",
    "1E-6176",
]
DOUBLES = [0.0, -0.0, 1.0, 1.5, -2.25, 1e300, 5e-324, float("inf"), float("-inf"), 2.0**53, 0.1]


@dataclass(frozen=True)
class OldValue:
    """A value of a type that servers keep and PyMongo no longer writes."""

    kind: int
    raw: bytes

    def within(self, name: str) -> bytes:
        """An element of this value."""
        return element(name.encode(), self.kind, self.raw)


UNDEFINED_VALUE = OldValue(UNDEFINED, b"")
OLD_KEYS = [
    OldValue(SYMBOL, string_value(b"a")),
    OldValue(SYMBOL, string_value(b"nul\x00inside")),
    OldValue(DB_POINTER, string_value(b"other.things") + bytes(range(12))),
]
"""Those of them that may be an ``_id``."""


def document_of(fields: dict[str, Any]) -> RawBSONDocument:
    """A document of any values, old ones included."""
    return RawBSONDocument(
        document(
            *(
                value.within(name)
                if isinstance(value, OldValue)
                else bson.encode({name: value})[4:-1]
                for name, value in fields.items()
            )
        )
    )


def equals(key: Any) -> RawBSONDocument:
    """The query for one ``_id`` of any type."""
    return RawBSONDocument(document(element(b"_id", OBJECT, document_of({"$eq": key}).raw)))


def types_in(raw: bytes, start: int = 0) -> set[int]:
    """The type bytes of all values in a document, at any depth."""
    found = set()
    for _, (kind, at, _) in iter_spans(raw, start):
        found.add(kind)
        if kind in (OBJECT, ARRAY):
            found |= types_in(raw, at)
    return found


class Values:
    """Values, names and documents drawn from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def scalar(self) -> Any:
        rng = self.rng
        kind = rng.randrange(21)
        if kind < 4:
            return rng.choice([0, 1, -1, rng.randrange(-100, 100), rng.randrange(-(2**31), 2**31)])
        return (
            lambda: Int64(rng.choice([0, 1, -1, 2**31, -(2**63), 2**63 - 1, rng.getrandbits(40)])),
            lambda: rng.choice([*DOUBLES, rng.uniform(-1e6, 1e6)]),
            lambda: Decimal128(rng.choice(DECIMALS)),
            lambda: rng.choice(STRINGS),
            lambda: rng.choice([True, False]),
            lambda: None,
            lambda: ObjectId(rng.randbytes(12)),
            lambda: Binary(rng.randbytes(16), rng.choice([OLD_UUID_SUBTYPE, UUID_SUBTYPE])),
            lambda: Binary(rng.randbytes(rng.randrange(6)), rng.choice([0, 1, 2, 5, 128])),
            lambda: DatetimeMS(rng.choice([0, -1, -62135596800000, rng.getrandbits(41)])),
            lambda: Timestamp(rng.getrandbits(31) + 1, rng.getrandbits(20)),
            lambda: Regex(
                rng.choice(["a.*", "^x$", ""]), rng.choice([0, re.IGNORECASE, re.DOTALL])
            ),
            lambda: Code("function() { return 1; }"),
            lambda: Code("x", {"scope": 1}),
            lambda: rng.choice([MinKey(), MaxKey()]),
            lambda: DBRef("other", ObjectId(rng.randbytes(12))),
            lambda: document_of({"old": rng.choice([*OLD_KEYS, UNDEFINED_VALUE]), "a": 1}),
        )[kind - 4]()

    def value(self, depth: int = 2) -> Any:
        pick = self.rng.random()
        if depth and pick < 0.2:
            return self.document(depth - 1)
        if depth and pick < 0.4:
            return [self.value(depth - 1) for _ in range(self.rng.randrange(7))]
        return self.scalar()

    def name(self, *, dotted: bool = False) -> str:
        pick = self.rng.random()
        if dotted and pick < 0.1:
            return self.rng.choice(DOTTED_NAMES)
        return self.rng.choice(ODD_NAMES if pick < 0.25 else PLAIN_NAMES)

    def document(self, depth: int = 2) -> dict[str, Any]:
        names = (self.name(dotted=True) for _ in range(self.rng.randrange(6)))
        # A null-timestamp at the top level would be filled in by the server, DBRef fields
        # need their order: both are left to the values inside.
        return {name: self.value(depth) for name in names}

    def id(self) -> Any:
        """An ``_id`` of any type that may be one."""
        rng = self.rng
        while True:
            value = rng.choice(
                [
                    rng.randrange(50),
                    Int64(rng.choice([3, 2**40, -(2**63)])),
                    float(rng.randrange(5)) + rng.choice([0, 0.5]),
                    ObjectId(rng.randbytes(12)),
                    uuid_binary(rng),
                    rng.choice(OLD_KEYS),
                    self.value(1),
                ]
            )
            if not isinstance(value, list | Regex) and not _has_dollar(value):
                return value

    def path(self) -> str:
        """A dotted path as update operators take it."""
        steps = [
            self.rng.choice([*PLAIN_NAMES, "0", "2", "01"]) for _ in range(self.rng.randrange(1, 4))
        ]
        return ".".join(steps)


def uuid_binary(rng: random.Random) -> Binary:
    return Binary.from_uuid(
        uuid.UUID(bytes=struct.pack("<QQ", rng.getrandbits(64), rng.getrandbits(64)))
    )


def _has_dollar(value: Any) -> bool:
    """The server takes no ``$`` names in an ``_id``; a DBRef has them."""
    if isinstance(value, DBRef):
        return True
    if isinstance(value, dict):
        return any(name.startswith("$") or _has_dollar(inner) for name, inner in value.items())
    return isinstance(value, list) and any(map(_has_dollar, value))
