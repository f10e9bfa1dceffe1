"""Numbers read back from KeyString bytes and type bits.

The class byte says sign and magnitude, the bytes behind it the double below (or the
integer part), and the type bits which of the four types it was. A decimal adds what
its marker and its continuation say, and the low bits of its exponent.

Spec: facts/server-semantics, 1.2, 1.3 and 2.4.
"""

from __future__ import annotations

import struct
import sys
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from tailrace.raw.elements import DECIMAL, DOUBLE, INT32, INT64
from tailrace.token.ctypes import (
    C_NAN,
    C_POSITIVE_1_BYTE,
    C_POSITIVE_LARGE,
    C_POSITIVE_SMALL,
    C_ZERO,
)
from tailrace.token.decimals import (
    ABOVE_ROUNDED,
    BIAS,
    DIGITS,
    EQUAL_TO_ROUNDED,
    HUGE_BIT,
    LARGEST_COEFFICIENT,
    ROUND_15,
    ROUND_34,
    Parts,
    parts_of,
    tiny_stored,
    unpack,
)
from tailrace.token.numbers import (
    EQUAL_TO_DOUBLE,
    INFINITY,
    INT64_MIN,
    LARGE,
    TINY_SCALE,
    mirrored,
)
from tailrace.token.reader import Reader

AS_INT32, AS_INT64, AS_DOUBLE, AS_DECIMAL = range(4)
NOT_A_DOUBLE, SMALL_NOT_A_DOUBLE, LARGE_NOT_A_DOUBLE, NAN_NOT_A_DOUBLE = 50810, 50825, 50826, 50819
NO_DECIMAL = 50814
DECIMAL_NAN, DECIMAL_INFINITY = 0x1F << 122, 0x1E << 122
NEGATIVE = 1 << 127
EXPONENT_MASK = 0x3F
EXPONENT_BITS = 6
WORD = 0xFFFF_FFFF_FFFF_FFFF

_DOUBLE = struct.Struct("<d")
_BITS = struct.Struct("<Q")


class Magnitude(NamedTuple):
    """What the bytes of a number say, its sign aside.

    ``near`` is the double that they hold; ``whole`` the integer part, where that is
    all; ``marker`` and ``continuation`` are a decimal's, ``exact`` a decimal that is
    stored as it is.
    """

    near: float
    whole: int | None = None
    marker: int = EQUAL_TO_DOUBLE
    stored: Decimal | None = None
    continuation: int = 0
    exact: Parts | None = None


def read_number(reader: Reader, ctype: int) -> tuple[int, bytes]:
    """The number that begins with this class byte, as type byte and raw value."""
    start = reader.at - 1
    if ctype == C_NAN:
        return _nan(reader, start)
    if ctype == C_ZERO:
        return _zero(reader, start)
    negative = ctype < C_ZERO
    cls = mirrored(ctype) if negative else ctype
    turned = _Turned(reader, 0xFF if negative else 0)
    kind = reader.bits.take(2)
    if cls == C_POSITIVE_LARGE:
        magnitude, refusal = _large(turned), LARGE_NOT_A_DOUBLE
    elif cls == C_POSITIVE_SMALL:
        magnitude, refusal = _small(turned), SMALL_NOT_A_DOUBLE
    else:
        magnitude, refusal = _middle(turned, cls - C_POSITIVE_1_BYTE + 1), NOT_A_DOUBLE
    if kind == AS_DECIMAL:
        return DECIMAL, _decimal(reader, magnitude, negative, start)
    if kind == AS_DOUBLE:
        if magnitude.marker != EQUAL_TO_DOUBLE or magnitude.exact:
            raise reader.broken("a double with a decimal's bytes", refusal, start)
        return DOUBLE, _DOUBLE.pack(-magnitude.near if negative else magnitude.near)
    whole = magnitude.whole
    if whole is None and kind == AS_INT64 and negative and magnitude.near == LARGE:
        whole = -INT64_MIN
    if whole is None:
        raise reader.broken("a number whose type bits say integer", refusal, start)
    return _integer(kind, -whole if negative else whole)


class _Turned:
    """Bytes of a number: those of a negative one are inverted."""

    def __init__(self, reader: Reader, mask: int) -> None:
        self._reader = reader
        self._mask = mask

    def integer(self, size: int) -> int:
        value = int.from_bytes(self._reader.take(size), "big")
        return value ^ ((1 << 8 * size) - 1) if self._mask else value


def _nan(reader: Reader, start: int) -> tuple[int, bytes]:
    kind = reader.bits.take(2)
    if kind == AS_DECIMAL:
        return DECIMAL, DECIMAL_NAN.to_bytes(16, "little")
    if kind != AS_DOUBLE:
        raise reader.broken("an integer that is not a number", NAN_NOT_A_DOUBLE, start)
    return DOUBLE, _DOUBLE.pack(float("nan"))


def _zero(reader: Reader, start: int) -> tuple[int, bytes]:
    kind = reader.bits.take(2)
    if kind == AS_DOUBLE:
        return DOUBLE, _DOUBLE.pack(0.0)
    if kind != AS_DECIMAL:
        return _integer(kind, 0)
    high = reader.bits.take(3)
    if not high:
        return DOUBLE, _DOUBLE.pack(-0.0)
    word = (high - 2 << 12) + reader.bits.take(12)
    if word < 0:
        raise reader.broken("a zero with impossible type bits", NO_DECIMAL, start)
    negative, exponent = divmod(word, 3 << 12)
    return DECIMAL, Parts(bool(negative), 0, exponent).pack().to_bytes(16, "little")


def _integer(kind: int, whole: int) -> tuple[int, bytes]:
    """An integer; an int32 that does not fit loses its upper bits, as on the server."""
    if kind == AS_INT32:
        return INT32, (whole & 0xFFFF_FFFF).to_bytes(4, "little")
    return INT64, (whole & WORD).to_bytes(8, "little")


def _middle(turned: _Turned, size: int) -> Magnitude:
    """From 1 up to 2^63: the integer part in ``size`` bytes, then perhaps a fraction."""
    code = turned.integer(size)
    whole = code >> 1
    if not code & 1:
        return Magnitude(float(whole), whole)
    free = 8 - size
    if not free:
        return _continued_whole(turned, whole)
    fraction = turned.integer(free)
    marker = fraction & 3
    scaled = (whole << 8 * free) + (fraction & ~3)
    if size == 7 and whole >= 1 << 53:
        return _continued_whole(turned, whole)
    return _continued(turned, scaled / 256**free, marker)


def _continued_whole(turned: _Turned, whole: int) -> Magnitude:
    return Magnitude(float(whole), None, ABOVE_ROUNDED, Decimal(whole), turned.integer(8))


def _continued(turned: _Turned, near: float, marker: int) -> Magnitude:
    if marker in (EQUAL_TO_DOUBLE, EQUAL_TO_ROUNDED):
        return Magnitude(near, None, marker)
    stored = ROUND_34.create_decimal_from_float(near)
    return Magnitude(near, None, marker, stored, turned.integer(8))


def _large(turned: _Turned) -> Magnitude:
    """From 2^63 on: a double, infinity, or a decimal that no double comes near."""
    word = turned.integer(8)
    if word == WORD:
        return Magnitude(INFINITY)
    if word >> 63:
        packed = (word << 64 | turned.integer(8)) & ~HUGE_BIT
        return Magnitude(sys.float_info.max, exact=unpack(packed))
    near = _double((word | 1 << 63) >> 1)
    return _continued(turned, near, ABOVE_ROUNDED if word & 1 else EQUAL_TO_DOUBLE)


def _small(turned: _Turned) -> Magnitude:
    """Below 1: a double, a tiny one scaled up, or a decimal as it is."""
    word = turned.integer(8)
    top = word >> 62
    if top == 3:
        return _continued(turned, _double(word >> 2), word & 3)
    if not top:
        return Magnitude(0.0, exact=unpack(word << 64 | turned.integer(8)))
    scaled = _double((word - (1 << 62)) >> 1)
    near = scaled / TINY_SCALE
    if not word & 1:
        return Magnitude(near)
    if scaled < sys.float_info.min * TINY_SCALE:  # ``near`` may be rounded up to the least normal
        return Magnitude(near, None, ABOVE_ROUNDED, tiny_stored(scaled), turned.integer(8))
    return _continued(turned, near, ABOVE_ROUNDED)


def _double(bits: int) -> float:
    return float(_DOUBLE.unpack(_BITS.pack(bits & WORD))[0])


def _decimal(reader: Reader, magnitude: Magnitude, negative: bool, start: int) -> bytes:
    sign = NEGATIVE if negative else 0
    if magnitude.near == INFINITY:
        return (DECIMAL_INFINITY | sign).to_bytes(16, "little")
    low = reader.bits.take(EXPONENT_BITS)
    try:
        parts = _with_exponent(_parts(magnitude), low)
    except (InvalidOperation, OverflowError, ValueError):
        parts = None
    if parts is None:
        raise reader.broken("no decimal has these bytes and type bits", NO_DECIMAL, start)
    return (parts.pack() | sign).to_bytes(16, "little")


def _parts(magnitude: Magnitude) -> Parts:
    """The digits of a decimal's magnitude, as many as there are."""
    if magnitude.exact is not None:
        return _normalised(magnitude.exact)
    if magnitude.stored is not None:
        base = parts_of(magnitude.stored).normalised()
        coefficient = base.coefficient + magnitude.continuation
        return _normalised(base._replace(coefficient=coefficient))
    if magnitude.whole is not None:
        return _normalised(Parts(False, magnitude.whole, BIAS))
    if magnitude.marker == EQUAL_TO_ROUNDED:
        return _normalised(parts_of(ROUND_15.create_decimal_from_float(magnitude.near)))
    return _normalised(parts_of(Decimal(magnitude.near)))


def _normalised(parts: Parts) -> Parts:
    """The same number; digits that a decimal has no place for must be zeros.

    A sum past a power of ten has one too many, and so has many a double as a decimal.
    """
    surplus = len(str(parts.coefficient)) - DIGITS
    if surplus > 0:
        coefficient, lost = divmod(parts.coefficient, 10**surplus)
        if lost:
            raise ValueError("more digits than a decimal has")
        parts = parts._replace(coefficient=coefficient, exponent=parts.exponent + surplus)
    return parts.normalised()


def _with_exponent(parts: Parts, low: int) -> Parts | None:
    """The same number with the exponent whose low bits are these, if it has one."""
    shift = (low - parts.exponent) & EXPONENT_MASK
    coefficient, lost = divmod(parts.coefficient, 10**shift)
    exponent = parts.exponent + shift
    if lost or not 0 < coefficient <= LARGEST_COEFFICIENT or exponent >= 1 << 14:
        return None
    return Parts(False, coefficient, exponent)
