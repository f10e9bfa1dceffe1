"""``$bitsAllSet`` and its three sisters, over integers and binary data."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN

from tailrace.query.context import refused
from tailrace.query.expressions.numbers import rounded
from tailrace.query.match.leaves import BAD_VALUE, Leaf, is_nan, value_of
from tailrace.query.values import INT64_MIN, NUMBERS, Value, items, number
from tailrace.raw import Span
from tailrace.raw.elements import ARRAY, BINARY, DECIMAL

BINARY_AT = 5
"""Behind a binary value's length and subtype."""
ALL_64 = (1 << 64) - 1
SIGN = 1 << 63

Held = Callable[[int, int], bool]

BIT_TESTS: dict[str, Held] = {
    "$bitsAllSet": lambda bits, mask: bits & mask == mask,
    "$bitsAllClear": lambda bits, mask: bits & mask == 0,
    "$bitsAnySet": lambda bits, mask: bits & mask != 0,
    "$bitsAnyClear": lambda bits, mask: bits & mask != mask,
}


def bit_leaf(name: str, argument: Value) -> Leaf:
    """The test of one of the four."""
    mask = _mask(name, argument)
    of_number = _mask_of_number(argument, mask)
    holds = BIT_TESTS[name]

    def test(buffer: bytes, span: Span) -> bool:
        if span[0] == BINARY:
            raw = buffer[span[1] + BINARY_AT : span[2]]
            return holds(int.from_bytes(raw, "little"), mask)
        if span[0] not in NUMBERS:
            return False
        bits = _bits_of(value_of(buffer, span))
        return bits is not None and holds(bits & ALL_64, of_number)

    return Leaf(test)


def _bits_of(value: Value) -> int | None:
    """A number's bits: doubles must be whole, decimals are rounded."""
    if value[0] != DECIMAL:
        return _whole(value)
    whole = rounded(number(value), ROUND_HALF_EVEN)
    return INT64_MIN if whole is None else whole


def _mask_of_number(argument: Value, mask: int) -> int:
    """The bits asked of an int64: all that lie above it are its sign's.

    The server reads binary masks as signed bytes: one of 0x80 or more asks for all bits
    above it as well.
    """
    made = mask & ALL_64
    if mask > ALL_64:
        made |= SIGN
    if argument[0] == BINARY:
        for place, byte in enumerate(argument[1][BINARY_AT : BINARY_AT + 8]):
            if byte >= 0x80:
                made |= (ALL_64 << (8 * place)) & ALL_64 & ~(0x7F << (8 * place))
    return made


def _whole(value: Value) -> int | None:
    amount = number(value)
    if is_nan(value) or not -(2**63) <= amount < 2**63 or amount != int(amount):
        return None
    return int(amount)


def _mask(name: str, argument: Value) -> int:
    """The bits that are asked for."""
    if argument[0] == ARRAY:
        mask = 0
        for each in items(argument):
            mask |= 1 << _position(name, each)
        return mask
    if argument[0] == BINARY:
        return int.from_bytes(argument[1][BINARY_AT:], "little")
    if argument[0] not in NUMBERS:
        raise refused(BAD_VALUE, f"{name} takes an Array, a number, or a BinData")
    whole = _whole(argument)
    if whole is None or whole < 0:
        raise refused(9, f"{name}: expected a non-negative integer")
    return whole


def _position(name: str, value: Value) -> int:
    if value[0] not in NUMBERS:
        raise refused(BAD_VALUE, f"bit positions must be an integer: {name}")
    amount = number(value)
    if is_nan(value) or amount != int(amount) or not -(2**31) <= amount < 2**31:
        raise refused(BAD_VALUE, f"bit positions must be a 32-bit integer: {name}")
    if amount < 0:
        raise refused(BAD_VALUE, f"bit positions must be >= 0: {name}")
    return int(amount)
