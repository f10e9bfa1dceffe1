"""A BSON value as its type byte and its bytes; the currency of the query languages.

Nothing is decoded until an operator asks, and what no operator touches is copied
as it came, so every type survives exactly: an int64 that would fit in an int32, a
decimal's trailing zeros, a date beyond Python's years. A missing value is type 0,
as in the server; it never reaches an output document.

Numbers are handed out as ``int``, ``float`` or ``Decimal`` and put back by type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from decimal import Decimal

from bson.decimal128 import Decimal128, create_decimal128_context

from tailrace.raw import document as join
from tailrace.raw import element, iter_spans
from tailrace.raw.elements import (
    ARRAY,
    BOOL,
    DATE,
    DECIMAL,
    DOUBLE,
    INT32,
    INT64,
    NULL,
    OBJECT,
    STRING,
    UNDEFINED,
)

Value = tuple[int, bytes]
"""Type byte (0: missing) and the value's bytes."""

Number = int | float | Decimal
"""A decoded number; ``int`` stands for both integer types."""

MISSING: Value = (0, b"")
NULL_VALUE: Value = (NULL, b"")
TRUE: Value = (BOOL, b"\x01")
FALSE: Value = (BOOL, b"\x00")
NUMBERS = frozenset((DOUBLE, INT32, INT64, DECIMAL))
NULLISH = frozenset((0, UNDEFINED, NULL))
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
DECIMAL_CONTEXT = create_decimal128_context()

_DOUBLE = struct.Struct("<d")
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")
_TEXT = "surrogateescape"


def boolean(truth: object) -> Value:
    """True or False."""
    return TRUE if truth else FALSE


def int32(number: int) -> Value:
    """An int32."""
    return INT32, _INT32.pack(number)


def int64(number: int) -> Value:
    """An int64."""
    return INT64, _INT64.pack(number)


def integer(number: int) -> Value:
    """The smallest integer type that holds the number."""
    return int32(number) if INT32_MIN <= number <= INT32_MAX else int64(number)


def double(number: float) -> Value:
    """A double."""
    return DOUBLE, _DOUBLE.pack(number)


def decimal(number: Decimal) -> Value:
    """A decimal128, rounded to its 34 digits."""
    return DECIMAL, Decimal128(DECIMAL_CONTEXT.create_decimal(number)).bid


def date(millis: int) -> Value:
    """A date from milliseconds since 1970."""
    return DATE, _INT64.pack(millis)


def string(text: str) -> Value:
    """A string."""
    return string_bytes(text.encode("utf-8", _TEXT))


def string_bytes(text: bytes) -> Value:
    """A string from its UTF-8 bytes."""
    return STRING, b"%b%b\x00" % ((len(text) + 1).to_bytes(4, "little"), text)


def document(fields: Iterable[tuple[bytes, Value]]) -> Value:
    """A document; missing values leave no field behind."""
    return OBJECT, join(*[element(name, kind, raw) for name, (kind, raw) in fields if kind])


def array(values: Iterable[Value]) -> Value:
    """An array; a missing value leaves no element behind."""
    present = [value for value in values if value[0]]
    return ARRAY, join(
        *[element(b"%d" % index, kind, raw) for index, (kind, raw) in enumerate(present)]
    )


def number(value: Value) -> Number:
    """The number in a numeric value."""
    kind, raw = value
    if kind == DOUBLE:
        return float(_DOUBLE.unpack(raw)[0])
    if kind == DECIMAL:
        return Decimal128.from_bid(raw).to_decimal()
    return int.from_bytes(raw, "little", signed=True)


def millis(value: Value) -> int:
    """The milliseconds of a date (or the bits of any 8-byte integer)."""
    return int.from_bytes(value[1], "little", signed=True)


def text_bytes(value: Value) -> bytes:
    """The UTF-8 bytes of a string, symbol or code."""
    return value[1][4:-1]


def text(value: Value) -> str:
    """The text of a string; bytes that are not UTF-8 survive a round trip."""
    return value[1][4:-1].decode("utf-8", _TEXT)


def fields(value: Value) -> Iterator[tuple[bytes, Value]]:
    """The fields of a document, in order."""
    raw = value[1]
    for name, (kind, start, end) in iter_spans(raw):
        yield name, (kind, raw[start:end])


def items(value: Value) -> list[Value]:
    """The elements of an array."""
    raw = value[1]
    return [(kind, raw[start:end]) for _, (kind, start, end) in iter_spans(raw)]


def truthy(value: Value) -> bool:
    """Whether the server takes a value for true: not missing, null, false or zero."""
    kind, raw = value
    if kind in NULLISH:
        return False
    if kind == BOOL:
        return raw != b"\x00"
    return kind not in NUMBERS or number(value) != 0
