"""The server's order over BSON values, and the keys under which equal values meet.

Types come first, in canonical groups: all numbers are one group, strings and symbols
another, missing and undefined a third. Within numbers the comparison is exact across
types, and NaN is below all of them and equal to itself. Only the simple collation is
known here: strings compare by their bytes.

``sort_key`` turns a value into a tuple that Python orders in the same way; equal
values have equal, hashable keys.
"""

from __future__ import annotations

from typing import Any

from tailrace.query.values import Value, fields, items, number
from tailrace.raw.elements import (
    ARRAY,
    BINARY,
    BOOL,
    CODE,
    CODE_SCOPE,
    DATE,
    DB_POINTER,
    DECIMAL,
    DOUBLE,
    INT32,
    INT64,
    MAX_KEY,
    MIN_KEY,
    NULL,
    OBJECT,
    OBJECT_ID,
    REGEX,
    STRING,
    SYMBOL,
    TIMESTAMP,
    UNDEFINED,
)

CANONICAL = {
    MIN_KEY: -1,
    0: 0,
    UNDEFINED: 0,
    NULL: 5,
    DOUBLE: 10,
    INT32: 10,
    INT64: 10,
    DECIMAL: 10,
    STRING: 15,
    SYMBOL: 15,
    OBJECT: 20,
    ARRAY: 25,
    BINARY: 30,
    OBJECT_ID: 35,
    BOOL: 40,
    DATE: 45,
    TIMESTAMP: 47,
    REGEX: 50,
    DB_POINTER: 55,
    CODE: 60,
    CODE_SCOPE: 65,
    MAX_KEY: 127,
}
"""Type byte to the group that the server compares first."""


def compare(left: Value, right: Value) -> int:
    """Below, equal or above as -1, 0 or 1."""
    if left == right:
        return 0
    a, b = sort_key(left), sort_key(right)
    return (a > b) - (a < b)


def equal(left: Value, right: Value) -> bool:
    """Whether the server's order puts two values in the same place."""
    return left == right or (
        CANONICAL[left[0]] == CANONICAL[right[0]] and sort_key(left) == sort_key(right)
    )


def sort_key(value: Value) -> tuple[Any, ...]:
    """A tuple that orders, and hashes, as the server compares."""
    kind = value[0]
    group = CANONICAL[kind]
    payload = _PAYLOADS.get(kind)
    return (group,) if payload is None else (group, payload(value))


def _number(value: Value) -> Any:
    amount = number(value)
    return (0, 0) if amount != amount else (1, amount)  # noqa: PLR0124 - NaN only


def _text(value: Value) -> bytes:
    return value[1][4:-1]


def _object(value: Value) -> tuple[Any, ...]:
    return tuple((CANONICAL[each[0]], name, sort_key(each)) for name, each in fields(value))


def _array(value: Value) -> tuple[Any, ...]:
    return tuple(sort_key(each) for each in items(value))


def _binary(value: Value) -> tuple[Any, ...]:
    raw = value[1]
    return raw[:4][::-1], raw[4:]


def _signed(value: Value) -> int:
    return int.from_bytes(value[1], "little", signed=True)


def _unsigned(value: Value) -> int:
    return int.from_bytes(value[1], "little")


def _regex(value: Value) -> list[bytes] | tuple[bytes, ...]:
    return tuple(value[1].split(b"\x00"))


def _pointer(value: Value) -> tuple[Any, ...]:
    raw = value[1]
    return len(raw), raw[4:]


def _scoped(value: Value) -> tuple[Any, ...]:
    raw = value[1]
    end = 8 + int.from_bytes(raw[4:8], "little")
    return raw[8 : end - 1], _object((OBJECT, raw[end:]))


_PAYLOADS = {
    DOUBLE: _number,
    INT32: _number,
    INT64: _number,
    DECIMAL: _number,
    STRING: _text,
    SYMBOL: _text,
    CODE: _text,
    OBJECT: _object,
    ARRAY: _array,
    BINARY: _binary,
    OBJECT_ID: lambda value: value[1],
    BOOL: lambda value: value[1],
    DATE: _signed,
    TIMESTAMP: _unsigned,
    REGEX: _regex,
    DB_POINTER: _pointer,
    CODE_SCOPE: _scoped,
}
