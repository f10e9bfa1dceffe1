"""Decimal128 as KeyString bytes, in the order of the doubles around it.

A decimal is stored as the double below it (towards zero) with a marker of two bits:
it is that double, or the double rounded up to 15 digits, or it lies below or above
that rounding, and then eight bytes continue with the difference. Decimals no
double comes near are stored as they are. All arithmetic here is on integers, or on
``decimal`` where the server rounds to a number of digits.

Spec: facts/server-semantics, 1.3.
"""

from __future__ import annotations

import decimal
import math
import sys
from decimal import Decimal
from typing import NamedTuple

from tailrace.token.ctypes import C_NAN, C_POSITIVE_LARGE, C_POSITIVE_SMALL, C_ZERO
from tailrace.token.numbers import (
    INFINITY,
    LARGE,
    TINIEST_WITH_MARKER,
    TINY_SCALE,
    double_bits,
    double_key,
    integer_key,
    mirrored,
)

BIAS = 6176
DIGITS = 34
COEFFICIENT_BITS = 113
LARGEST_COEFFICIENT = 10**DIGITS - 1
BELOW_ROUNDED, EQUAL_TO_ROUNDED, ABOVE_ROUNDED = 1, 2, 3
"""Markers: below, at and above the double rounded up to 15 digits."""
HUGE_BIT = 1 << 127
SAFE_WHOLE = 2.0**53
"""From here on a double may miss part of a decimal's integer part."""
SEVEN_BYTES = 1 << 55

ROUND_15 = decimal.Context(prec=15, rounding=decimal.ROUND_UP)
ROUND_34 = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_UP)
TRUNCATE_34 = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_DOWN)
EXACT = decimal.Context(prec=10_000)
TINY_FACTOR = int(TINY_SCALE)
UNSCALE = TRUNCATE_34.plus(Decimal.from_float(2.0**-256))


class Parts(NamedTuple):
    """A finite decimal128: its sign, coefficient and biased exponent."""

    negative: bool
    coefficient: int
    exponent: int

    def pack(self) -> int:
        """The 128 bits of the decimal."""
        return self.negative << 127 | self.exponent << COEFFICIENT_BITS | self.coefficient

    def normalised(self) -> Parts:
        """The same number with as many digits as there are, or the least exponent."""
        shift = min(DIGITS - len(str(self.coefficient)), self.exponent)
        return Parts(self.negative, self.coefficient * 10**shift, self.exponent - shift)


def decimal_key(packed: int) -> tuple[bytes, bytes]:
    """The key bytes and type bits of a decimal128 from its 128 bits."""
    negative = bool(packed >> 127)
    if packed >> 122 & 0x1F == 0x1F:
        return b"%c" % C_NAN, b"11"
    if packed >> 122 & 0x1F == 0x1E:
        return double_key(-INFINITY if negative else INFINITY), b"11"
    parts = unpack(packed)
    if not parts.coefficient:
        word = parts.exponent + (3 << 12 if negative else 0)
        return b"%c" % C_ZERO, b"%05d%012d" % (
            int(f"{0x1A + (word >> 12):b}"),
            int(f"{word & 0xFFF:b}"),
        )
    bits = f"11{parts.exponent & 0x3F:06b}".encode()
    key = _positive_key(parts._replace(negative=False))
    return _inverted(key) if negative else key, bits


def unpack(packed: int) -> Parts:
    """The parts of a finite decimal128; a coefficient that does not count is zero."""
    negative = bool(packed >> 127)
    if packed >> 125 & 3 == 3:
        return Parts(negative, 0, packed >> 111 & 0x3FFF)
    coefficient = packed & ((1 << COEFFICIENT_BITS) - 1)
    if coefficient > LARGEST_COEFFICIENT:
        coefficient = 0
    return Parts(negative, coefficient, packed >> COEFFICIENT_BITS & 0x3FFF)


def _positive_key(parts: Parts) -> bytes:
    below, exact = double_below(parts)
    if exact:
        return double_key(below)
    if below < sys.float_info.min:
        return _tiny_key(parts, below)
    if below == sys.float_info.max:
        return b"%c%b" % (
            C_POSITIVE_LARGE,
            (parts.normalised().pack() | HUGE_BIT).to_bytes(16, "big"),
        )
    if SAFE_WHOLE <= below < LARGE:
        return _long_key(parts)
    if TINIEST_WITH_MARKER <= below < LARGE:
        rounded = ROUND_15.create_decimal_from_float(below)
        compared = EXACT.compare(value_of(parts), rounded)
        if not compared:
            return double_key(below, EQUAL_TO_ROUNDED)
        marker = BELOW_ROUNDED if compared < 0 else ABOVE_ROUNDED
    else:
        marker = ABOVE_ROUNDED
    stored = ROUND_34.create_decimal_from_float(below)
    return double_key(below, marker) + _continuation(parts, stored)


def _tiny_key(parts: Parts, below: float) -> bytes:
    """Under the normal range of doubles: by the double below 2^256 times the number."""
    if not below:
        return b"%c%b" % (C_POSITIVE_SMALL, parts.normalised().pack().to_bytes(16, "big"))
    scaled, _ = double_below(parts, TINY_FACTOR)
    bits = (1 << 62) + (double_bits(scaled) << 1 | 1)
    head = b"%c%b" % (C_POSITIVE_SMALL, bits.to_bytes(8, "big"))
    return head + _continuation(parts, tiny_stored(scaled))


def _long_key(parts: Parts) -> bytes:
    """Between 2^53 and 2^63: the integer part exactly, the rest as a continuation."""
    shift = parts.exponent - BIAS
    whole = parts.coefficient * 10**shift if shift >= 0 else parts.coefficient // 10**-shift
    if shift >= 0 or whole * 10**-shift == parts.coefficient:
        return integer_key(whole)
    code = bytearray(integer_key(whole))
    code[-1] |= 1
    if whole < SEVEN_BYTES:
        code.append(ABOVE_ROUNDED)
    return bytes(code) + _continuation(parts, Decimal(whole))


def tiny_stored(scaled: float) -> Decimal:
    """The decimal that a scaled double stands for, as the server rounds it."""
    return TRUNCATE_34.multiply(TRUNCATE_34.create_decimal_from_float(scaled), UNSCALE)


def _continuation(parts: Parts, stored: Decimal) -> bytes:
    base = parts_of(stored).normalised()
    shift = parts.exponent - base.exponent
    scaled = parts.coefficient * 10 ** max(shift, 0) // 10 ** max(-shift, 0)
    difference = int(scaled) - base.coefficient
    return difference.to_bytes(8, "big")


def double_below(parts: Parts, factor: int = 1) -> tuple[float, bool]:
    """The magnitude, times a factor, truncated to a double, and whether nothing was lost."""
    shift = parts.exponent - BIAS
    numerator = factor * parts.coefficient * 10 ** max(shift, 0)
    denominator = 10 ** max(-shift, 0)
    try:
        near = numerator / denominator
    except OverflowError:
        return sys.float_info.max, False
    top, bottom = near.as_integer_ratio()
    excess = top * denominator - numerator * bottom
    return (math.nextafter(near, 0.0) if excess > 0 else near), not excess


def value_of(parts: Parts) -> Decimal:
    """The magnitude as a ``Decimal``."""
    return Decimal(parts.coefficient).scaleb(parts.exponent - BIAS, EXACT)


def parts_of(number: Decimal) -> Parts:
    """The parts of a finite ``Decimal`` of at most 34 digits."""
    sign, digits, exponent = number.as_tuple()
    return Parts(bool(sign), int("".join(map(str, digits))), int(exponent) + BIAS)


def _inverted(key: bytes) -> bytes:
    return bytes((mirrored(key[0]), *(byte ^ 0xFF for byte in key[1:])))
