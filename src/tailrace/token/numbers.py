"""Numbers as KeyString bytes: one order across int32, int64, double and decimal.

A number's bytes begin with its class: the sign, and how many bytes its integer part
takes. The integer part is stored doubled; the low bit says whether a fraction
follows. Every byte of a negative number is inverted. Which of the four types it was
is left to the type bits.

Spec: facts/server-semantics, 1.2 (decimals: ``decimals.py``).
"""

from __future__ import annotations

import struct

from tailrace.token.ctypes import (
    C_NAN,
    C_NEGATIVE_1_BYTE,
    C_POSITIVE_1_BYTE,
    C_POSITIVE_8_BYTES,
    C_POSITIVE_LARGE,
    C_POSITIVE_SMALL,
    C_ZERO,
)

INT64_MIN = -(1 << 63)
LARGE = 2.0**63
"""The smallest magnitude that is stored as a double instead of as an integer."""
TINIEST_WITH_MARKER = 2.0**-255
"""The smallest double that leaves two bits for the decimal marker."""
TINY_SCALE = 2.0**256
INFINITY = float("inf")
EQUAL_TO_DOUBLE = 0
"""The marker of a number that is exactly the stored double."""

_DOUBLE = struct.Struct("<d")
_DOUBLE_BITS = struct.Struct("<q")
_WORD = 0xFFFF_FFFF_FFFF_FFFF


def integer_code(number: int) -> int:
    """The key bytes of an int64 above its minimum, read as one big-endian integer."""
    if number > 0:
        size = (number.bit_length() + 8) >> 3
        return (C_POSITIVE_1_BYTE - 1 + size << 8 * size) + (number << 1)
    if number < 0:
        size = (number.bit_length() + 8) >> 3
        return (C_NEGATIVE_1_BYTE + 2 - size << 8 * size) + (number << 1) - 1
    return C_ZERO


def integer_key(number: int) -> bytes:
    """The key bytes of an int32 or int64."""
    if number == INT64_MIN:
        return double_key(float(number))
    code = integer_code(number)
    return code.to_bytes((code.bit_length() + 7) >> 3, "big")


def double_key(number: float, marker: int = EQUAL_TO_DOUBLE) -> bytes:
    """The key bytes of a double; ``marker`` says how a decimal lies to it."""
    negative = number < 0
    magnitude = -number if negative else number
    if magnitude >= LARGE:
        return _signed(C_POSITIVE_LARGE, _large_bits(magnitude, marker), negative)
    if magnitude >= 1:
        whole = int(magnitude)
        if whole == magnitude and marker == EQUAL_TO_DOUBLE:
            return integer_key(-whole if negative else whole)
        free = (64 - (whole << 1).bit_length()) >> 3
        bits = int(magnitude * 256.0**free) + ((whole + 1) << 8 * free)
        return _signed(C_POSITIVE_8_BYTES - free, bits | marker, negative)
    if magnitude > 0:
        return _signed(C_POSITIVE_SMALL, _small_bits(magnitude, marker), negative)
    return b"%c" % (C_ZERO if number == 0 else C_NAN)


def _large_bits(magnitude: float, marker: int) -> int:
    if magnitude == INFINITY:
        return _WORD
    return (double_bits(magnitude) << 1) & ~(1 << 63) | (marker != EQUAL_TO_DOUBLE)


def _small_bits(magnitude: float, marker: int) -> int:
    if magnitude >= TINIEST_WITH_MARKER:
        return (double_bits(magnitude) << 2) & _WORD | marker
    scaled = double_bits(magnitude * TINY_SCALE)
    return (1 << 62) + (scaled << 1 | (marker != EQUAL_TO_DOUBLE))


def double_bits(number: float) -> int:
    """The bits of a double that is not negative."""
    return int(_DOUBLE_BITS.unpack(_DOUBLE.pack(number))[0])


def _signed(ctype: int, bits: int, negative: bool) -> bytes:
    if negative:
        return b"%c%b" % (mirrored(ctype), (bits ^ _WORD).to_bytes(8, "big"))
    return b"%c%b" % (ctype, bits.to_bytes(8, "big"))


def mirrored(ctype: int) -> int:
    """The class of the negative number of the same magnitude (and back)."""
    return 2 * C_ZERO - ctype
