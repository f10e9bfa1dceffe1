"""Tests of one element: comparison, membership, type, size, division, existence.

Each maker takes an operator's argument and gives a ``Leaf``: the test of an element in
its buffer, and whether an array at the end of the path is gone into. Comparisons only
meet values of their own type; numbers are one type, null meets what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.query.context import Context, refused
from tailrace.query.ordering import CANONICAL, compare, sort_key
from tailrace.query.paths import Test
from tailrace.query.values import INT32_MAX, NUMBERS, Value, items, number
from tailrace.raw import Span, iter_spans
from tailrace.raw.elements import (
    ARRAY,
    DECIMAL,
    DOUBLE,
    INT32,
    INT64,
    MAX_KEY,
    MIN_KEY,
    NULL,
    REGEX,
    STRING,
    UNDEFINED,
)

BAD_VALUE = 2


@dataclass(frozen=True, slots=True)
class Leaf:
    """What one operator asks of an element."""

    test: Test
    into_leaf: bool = True


def never(buffer: bytes, span: Span) -> bool:
    """Passes nothing."""
    return False


def value_of(buffer: bytes, span: Span) -> Value:
    """An element as a value."""
    return span[0], buffer[span[1] : span[2]]


def is_nan(value: Value) -> bool:
    """Whether a value is a number that is none."""
    if value[0] not in (DOUBLE, DECIMAL):
        return False
    amount = number(value)
    return amount != amount  # noqa: PLR0124 - NaN only


def comparison(name: str, wanted: Value) -> Test:
    """The test of ``$eq``, ``$gt``, ``$gte``, ``$lt`` or ``$lte``."""
    if wanted[0] == UNDEFINED:
        raise refused(BAD_VALUE, "cannot compare to undefined")
    holds = HOLDS[name]
    group = CANONICAL[wanted[0]]
    if is_nan(wanted):
        return _meets_nan if holds(0) else never
    if name == "$eq" and wanted[0] not in NUMBERS and wanted[0] != NULL:
        return _equals(wanted, group)
    otherwise = _other_types(name, wanted)
    want_null = wanted[0] == NULL and holds(0)

    def test(buffer: bytes, span: Span) -> bool:
        kind = span[0]
        if CANONICAL[kind] != group:
            return otherwise or (want_null and kind in (0, UNDEFINED))
        value = value_of(buffer, span)
        if kind in NUMBERS and is_nan(value):
            return False
        return holds(compare(value, wanted))

    return test


HOLDS: dict[str, Callable[[int], bool]] = {
    "$eq": lambda order: order == 0,
    "$gt": lambda order: order > 0,
    "$gte": lambda order: order >= 0,
    "$lt": lambda order: order < 0,
    "$lte": lambda order: order <= 0,
}


def _other_types(name: str, wanted: Value) -> bool:
    """Whether values of other types pass: they do for the ends of the order only."""
    if wanted[0] == MAX_KEY:
        return name in ("$lt", "$lte")
    return wanted[0] == MIN_KEY and name in ("$gt", "$gte")


def _meets_nan(buffer: bytes, span: Span) -> bool:
    return is_nan(value_of(buffer, span))


def _equals(wanted: Value, group: int) -> Test:
    """Equality by bytes first: most values are equal so, or not at all."""
    kind, raw = wanted
    size = len(raw)
    plain = kind == STRING
    key = sort_key(wanted)

    def test(buffer: bytes, span: Span) -> bool:
        if span[0] == kind and span[2] - span[1] == size and buffer[span[1] : span[2]] == raw:
            return True
        if CANONICAL[span[0]] != group or (plain and span[0] == kind):
            return False
        return sort_key(value_of(buffer, span)) == key

    return test


def membership(values: list[Value], patterns: list[Test]) -> Test:
    """The test of ``$in``: equal to one of the values, or matched by one of the patterns."""
    keys = {sort_key(value) for value in values}
    with_null = any(value[0] == NULL for value in values)

    def test(buffer: bytes, span: Span) -> bool:
        if span[0] in (0, UNDEFINED):
            return with_null
        return sort_key(value_of(buffer, span)) in keys or any(
            pattern(buffer, span) for pattern in patterns
        )

    return test


def exists(buffer: bytes, span: Span) -> bool:
    """Whether there is an element at all."""
    return span[0] != 0


def size(wanted: Value) -> Leaf:
    """``$size``: an array of that many elements."""
    count = whole_number(wanted, "$size")
    if not 0 <= count <= INT32_MAX:
        raise refused(BAD_VALUE, "$size must be a number that an array can have")

    def test(buffer: bytes, span: Span) -> bool:
        return span[0] == ARRAY and sum(1 for _ in iter_spans(buffer, span[1])) == count

    return Leaf(test, into_leaf=False)


def whole_number(value: Value, name: str) -> int:
    """An argument that must be an integer that an int64 holds."""
    if value[0] not in NUMBERS:
        raise refused(BAD_VALUE, f"{name} needs a number")
    amount = number(value)
    if is_nan(value) or amount != (whole := truncated(value)):
        raise refused(BAD_VALUE, f"Expected an integer: {name}")
    return whole


def truncated(value: Value) -> int:
    """A number cut to an int64, with the ends of the range for what lies outside."""
    amount = number(value)
    if is_nan(value):
        return 0
    if isinstance(amount, int):
        return amount
    if amount >= 2**63:
        return 2**63 - 1
    if amount <= -(2**63):
        return -(2**63)
    return int(amount)


def modulo(argument: Value, context: Context) -> Leaf:
    """``$mod``: the remainder of a division of what is left of the point."""
    if argument[0] != ARRAY:
        raise refused(BAD_VALUE, "malformed mod, needs to be an array")
    parts = items(argument)
    if len(parts) < 2:
        raise refused(BAD_VALUE, "malformed mod, not enough elements")
    if len(parts) > 2:
        raise refused(BAD_VALUE, "malformed mod, too many elements")
    for part, what in zip(parts, ("divisor", "remainder"), strict=True):
        if part[0] not in NUMBERS:
            raise refused(BAD_VALUE, f"malformed mod, {what} not a number")
        if not _is_finite(part) or not -(2**63) <= number(part) < 2**63:
            raise refused(BAD_VALUE, f"malformed mod, {what} value is invalid")
    divisor, remainder = map(truncated, parts)
    if divisor == 0:
        raise refused(BAD_VALUE, "divisor cannot be 0")

    def test(buffer: bytes, span: Span) -> bool:
        if span[0] not in NUMBERS:
            return False
        value = value_of(buffer, span)
        if span[0] not in (INT32, INT64) and not _in_range(value):
            return False
        amount = truncated(value)
        left = abs(amount) % abs(divisor)
        return (-left if amount < 0 else left) == remainder

    return Leaf(test)


def _is_finite(value: Value) -> bool:
    amount = number(value)
    return not is_nan(value) and abs(amount) != float("inf")


def _in_range(value: Value) -> bool:
    return _is_finite(value) and -(2**63) <= number(value) < 2**63


def same_pattern(wanted: Value) -> Test:
    """Whether an element is this very regular expression."""

    def test(buffer: bytes, span: Span) -> bool:
        return span[0] == REGEX and buffer[span[1] : span[2]] == wanted[1]

    return test
