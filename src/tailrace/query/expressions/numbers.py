"""Numbers as the expression language computes with them: widening, rounding, conversion.

Integers are ``int`` with a width, doubles ``float``, decimals ``Decimal`` with 34 digits.
A double becomes a decimal of 15 digits. What does not fit into an int64 becomes a double.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

from tailrace.query.context import refused
from tailrace.query.values import (
    DECIMAL_CONTEXT,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    NUMBERS,
    Number,
    Value,
    decimal,
    double,
    int32,
    int64,
    integer,
    number,
)
from tailrace.raw.elements import DECIMAL, DOUBLE, INT32, INT64

OUT_OF_RANGE = 31109
WIDTH = {INT32: 0, INT64: 1, DOUBLE: 2, DECIMAL: 3}
DOUBLE_DIGITS = 15
DIGITS_34 = DECIMAL_CONTEXT
EXACT = Context(prec=1200, Emin=-999999, Emax=999999, traps=[InvalidOperation])
QUIET = Context(prec=34, rounding=DIGITS_34.rounding, Emin=-6143, Emax=6144, clamp=1, traps=[])
"""Arithmetic of decimals that answers with infinity and NaN, as the server's does."""
_ROUND_15 = Context(prec=DOUBLE_DIGITS, rounding=ROUND_HALF_EVEN)
INFINITE = Decimal("Infinity")
NOT_A_NUMBER = Decimal("NaN")


def widest(left: int, right: int) -> int:
    """The type byte of what two numeric types make together."""
    return left if WIDTH[left] >= WIDTH[right] else right


def is_number(value: Value) -> bool:
    """Whether a value is numeric."""
    return value[0] in NUMBERS


def as_decimal(amount: Number) -> Decimal:
    """A number as a decimal; a double keeps 15 digits, always all of them."""
    if isinstance(amount, Decimal):
        return amount
    if isinstance(amount, int):
        return Decimal(amount)
    if amount == 0 or not math.isfinite(amount):
        return Decimal(str(amount)) if amount else Decimal("-0" if is_negative(amount) else "0")
    rounded = _ROUND_15.create_decimal(DIGITS_34.create_decimal_from_float(amount))
    exponent = rounded.adjusted() - DOUBLE_DIGITS + 1
    return rounded.quantize(Decimal((0, (1,), exponent)), context=EXACT)


def is_nan(amount: Number) -> bool:
    """Whether a number is none; decimals raise when such a one is compared."""
    return amount != amount  # noqa: PLR0124 - NaN only


def is_negative(amount: float) -> bool:
    """Whether the sign of a double is set, zero's too."""
    return math.copysign(1.0, amount) < 0


def as_double(amount: Number) -> float:
    """A number as a double."""
    try:
        return float(amount)
    except OverflowError:
        return math.inf if amount > 0 else -math.inf


def wrapped(kind: int, amount: Number) -> Value:
    """A number under a type; an int32 that grew becomes an int64, an int64 a double."""
    if kind == DECIMAL:
        return decimal(as_decimal(amount))
    if kind == DOUBLE:
        return double(as_double(amount))
    whole = int(amount)
    if not INT64_MIN <= whole <= INT64_MAX:
        return double(as_double(amount))
    return integer(whole) if kind == INT32 else int64(whole)


def coerced_long(value: Value) -> int:
    """A number as an int64: doubles are cut, decimals rounded, and what is too large refused."""
    amount = number(value)
    if isinstance(amount, int):
        return amount
    if isinstance(amount, Decimal):
        whole = amount.to_integral_value() if amount.is_finite() else amount
        return int(whole) if whole.is_finite() and in_int64(int(whole)) else INT64_MIN
    if not (math.isfinite(amount) and in_int64(int(amount))):
        raise refused(OUT_OF_RANGE, f"Can't coerce out of range value {amount} to long")
    return int(amount)


def rounded(amount: Number, rounding: str) -> int | None:
    """The nearest int64 by a rule for the middle; None when there is none."""
    if isinstance(amount, int):
        return amount if in_int64(amount) else None
    exact = amount if isinstance(amount, Decimal) else Decimal(amount)
    if not exact.is_finite():
        return None
    whole = int(exact.to_integral_value(rounding, EXACT))
    return whole if in_int64(whole) else None


def in_int64(whole: int) -> bool:
    """Whether an int64 holds a number."""
    return INT64_MIN <= whole <= INT64_MAX


def is_integral(value: Value) -> bool:
    """Whether a number is whole and fits an int32, as positions must."""
    whole = whole_of(value)
    return whole is not None and INT32_MIN <= whole <= INT32_MAX


def whole_of(value: Value) -> int | None:
    """The whole number in a numeric value that fits an int64; None for any other."""
    if value[0] not in NUMBERS:
        return None
    amount = number(value)
    if isinstance(amount, int):
        return amount
    if not (math.isfinite(amount) if isinstance(amount, float) else amount.is_finite()):
        return None
    if not INT64_MIN <= amount <= INT64_MAX or amount != int(amount):
        return None
    return int(amount)


def same_width(value: Value, amount: Number) -> Value:
    """A number under the type of another value."""
    kind = value[0]
    if kind == INT32:
        return int32(int(amount))
    return wrapped(kind, amount)


def numeric(value: Value, code: int, said: str) -> Value:
    """A numeric value, or the server's refusal."""
    if value[0] not in NUMBERS:
        raise refused(code, said)
    return value
