"""Strings: joining, cutting, changing, by code point and by byte."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.query.context import refused
from tailrace.query.expressions.parser import Operator
from tailrace.query.expressions.reading import lazy
from tailrace.query.values import NULL_VALUE, NULLISH, Value, string_bytes, text_bytes
from tailrace.raw.elements import STRING


def _concat(values: Iterator[Value]) -> Value:
    found = []
    for value in values:
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != STRING:
            raise refused(16702, f"$concat only supports strings, not {value[0]}")
        found.append(text_bytes(value))
    return string_bytes(b"".join(found))


STRINGS = {
    "$concat": Operator(lazy(_concat)),
}
