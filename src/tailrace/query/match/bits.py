"""``$bitsAllSet`` and its three sisters, over integers and binary data."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.query.context import refused
from tailrace.query.match.leaves import BAD_VALUE, Leaf, is_nan, value_of
from tailrace.query.values import NUMBERS, Value, items, number
from tailrace.raw import Span
from tailrace.raw.elements import ARRAY, BINARY

BINARY_AT = 5
"""Behind a binary value's length and subtype."""
INT64_BITS = 64

Held = Callable[[int, int], bool]

BIT_TESTS: dict[str, Held] = {
    "$bitsAllSet": lambda bits, mask: bits & mask == mask,
    "$bitsAllClear": lambda bits, mask: bits & mask == 0,
    "$bitsAnySet": lambda bits, mask: bits & mask != 0,
    "$bitsAnyClear": lambda bits, mask: bits & mask != mask,
}


def bit_leaf(name: str, argument: Value) -> Leaf:
    """The test of one of the four."""
    mask, highest = _mask(name, argument)
    holds = BIT_TESTS[name]

    def test(buffer: bytes, span: Span) -> bool:
        if span[0] == BINARY:
            raw = buffer[span[1] + BINARY_AT : span[2]]
            return holds(int.from_bytes(raw, "little"), mask)
        if span[0] not in NUMBERS:
            return False
        bits = _whole(value_of(buffer, span))
        if bits is None:
            return False
        # What lies above an int64 has the bit of its sign.
        return holds(bits & ((1 << max(INT64_BITS, highest + 1)) - 1), mask)

    return Leaf(test)


def _whole(value: Value) -> int | None:
    amount = number(value)
    if is_nan(value) or not -(2**63) <= amount < 2**63 or amount != int(amount):
        return None
    return int(amount)


def _mask(name: str, argument: Value) -> tuple[int, int]:
    """The bits asked for, and the highest of them."""
    if argument[0] == ARRAY:
        positions = [_position(name, each) for each in items(argument)]
        mask = 0
        for position in positions:
            mask |= 1 << position
    elif argument[0] == BINARY:
        mask = int.from_bytes(argument[1][BINARY_AT:], "little")
    elif argument[0] in NUMBERS:
        whole = _whole(argument)
        if whole is None or whole < 0:
            raise refused(9, f"{name}: expected a non-negative integer")
        mask = whole
    else:
        raise refused(BAD_VALUE, f"{name} takes an Array, a number, or a BinData")
    return mask, mask.bit_length()


def _position(name: str, value: Value) -> int:
    if value[0] not in NUMBERS:
        raise refused(BAD_VALUE, f"bit positions must be an integer: {name}")
    amount = number(value)
    if is_nan(value) or amount != int(amount) or not -(2**31) <= amount < 2**31:
        raise refused(BAD_VALUE, f"bit positions must be a 32-bit integer: {name}")
    if amount < 0:
        raise refused(BAD_VALUE, f"bit positions must be >= 0: {name}")
    return int(amount)
