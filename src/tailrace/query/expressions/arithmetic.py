"""Arithmetic over numbers and dates: sums, products, remainders, powers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import ROUND_DOWN, ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from functools import partial

from tailrace.errors import NotEvaluable
from tailrace.query.context import not_here, refused
from tailrace.query.expressions.node import Node
from tailrace.query.expressions.numbers import (
    DIGITS_34,
    NOT_A_NUMBER,
    QUIET,
    as_decimal,
    as_double,
    coerced_long,
    in_int64,
    is_integral,
    is_nan,
    is_number,
    rounded,
    widest,
    wrapped,
)
from tailrace.query.expressions.parser import Operator, Scope
from tailrace.query.expressions.reading import binary, eager, lazy, unary
from tailrace.query.expressions.totals import Total
from tailrace.query.values import (
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    NULL_VALUE,
    NULLISH,
    Number,
    Value,
    date,
    decimal,
    double,
    int32,
    int64,
    millis,
    number,
)
from tailrace.raw.elements import DATE, DECIMAL, DOUBLE, INT32, INT64

OVERFLOW, DATE_OVERFLOW = 15, 159
NO_PLACES = int32(0)
STEPWISE_SINCE = (6, 1)
MIN_EXPONENT = -6176
NO_DECIMALS = "decimals only on a server: they need its decimal library"


def _read_add(name: str, argument: Value, scope: Scope) -> Node:
    """Until 6.0 a sum with decimals or a date is exact until its end; since then stepwise."""
    stepwise = scope.context.since(*STEPWISE_SINCE)
    return lazy(_add_stepwise if stepwise else _add_at_last)(name, argument, scope)


def _operands(values: Iterator[Value]) -> Iterator[Value]:
    """The numbers and the date of a sum; a null ends it."""
    dated = False
    for value in values:
        if value[0] == DATE:
            if dated:
                raise refused(16612, "only one date allowed in an $add expression")
            dated = True
        elif value[0] not in NULLISH and not is_number(value):
            raise refused(16554, "$add only supports numeric or date types")
        yield value
        if value[0] in NULLISH:
            return


def _add_at_last(values: Iterator[Value]) -> Value:
    dated, total = False, Total()
    for value in _operands(values):
        if value[0] in NULLISH:
            return NULL_VALUE
        dated |= value[0] == DATE
        total.add(int64(millis(value)) if value[0] == DATE else value)
    if not dated:
        return total.value()
    if total.kind == DECIMAL:
        return date(coerced_long(decimal(total.exact)))
    return _dated(rounded(total.rest, ROUND_HALF_DOWN))


def _add_stepwise(values: Iterator[Value]) -> Value:
    """Beside a date each operand is rounded by itself."""
    kind, dated = INT32, False
    summed: Number = 0
    for value in _operands(values):
        if value[0] in NULLISH:
            return NULL_VALUE
        if not dated and value[0] != DATE:
            kind, summed = _sum(kind, summed, value)
            continue
        before = summed if dated else _nearest(summed)
        added = millis(value) if value[0] == DATE else _nearest(number(value))
        dated = True
        if before is None or added is None:
            raise refused(OVERFLOW, "date overflow in $add")
        summed = millis(_dated(int(before) + added))
    return date(int(summed)) if dated else wrapped(kind, summed)


def _nearest(amount: Number) -> int | None:
    """The whole milliseconds nearest to a number: the middle of two goes by its type."""
    middle = ROUND_HALF_EVEN if isinstance(amount, Decimal) else ROUND_HALF_UP
    return rounded(amount, middle)


def _dated(whole: int | None) -> Value:
    if whole is None or not in_int64(whole):
        raise refused(OVERFLOW, "date overflow in $add")
    return date(whole)


def _sum(kind: int, total: Number, value: Value) -> tuple[int, Number]:
    new = widest(kind, value[0])
    amount = number(value)
    if new == DECIMAL:
        return new, QUIET.add(as_decimal(total), as_decimal(amount))
    if new == DOUBLE:
        return new, as_double(total) + as_double(amount)
    whole = int(total) + int(amount)
    if not in_int64(whole):
        return DOUBLE, as_double(total) + as_double(amount)
    return new, whole


def _read_subtract(name: str, argument: Value, scope: Scope) -> Node:
    """What is taken from a date is cut until 6.0, and rounded since."""
    rounds = scope.context.since(*STEPWISE_SINCE)
    return binary(partial(_subtract, rounds=rounds))(name, argument, scope)


def _subtract(left: Value, right: Value, *, rounds: bool) -> Value:
    if is_number(left) and is_number(right):
        return _difference(left, right)
    if left[0] in NULLISH or right[0] in NULLISH:
        return NULL_VALUE
    if left[0] != DATE:
        raise refused(16556, "can't $subtract these types")
    if right[0] == DATE:
        taken: int | None = millis(right)
    elif is_number(right):
        exact = rounds or right[0] == DECIMAL
        taken = _nearest(number(right)) if exact else coerced_long(right)
    else:
        raise refused(16613, "can't $subtract this from a Date")
    if taken == INT64_MIN and right[0] != DATE:
        taken = None  # there is no such number with the other sign
    difference = None if taken is None else millis(left) - taken
    if difference is None or not in_int64(difference):
        raise refused(DATE_OVERFLOW, "overflow in $subtract of dates")
    return int64(difference) if right[0] == DATE else date(difference)


def _difference(left: Value, right: Value) -> Value:
    kind = widest(left[0], right[0])
    a, b = number(left), number(right)
    if kind == DECIMAL:
        return decimal(QUIET.subtract(as_decimal(a), as_decimal(b)))
    if kind == DOUBLE:
        return double(as_double(a) - as_double(b))
    whole = int(a) - int(b)
    return wrapped(kind, whole) if in_int64(whole) else double(as_double(a) - as_double(b))


def _multiply(values: Iterator[Value]) -> Value:
    kind, whole, real, exact = INT32, 1, 1.0, Decimal(1)
    for value in values:
        if value[0] in NULLISH:
            return NULL_VALUE
        if not is_number(value):
            raise refused(16555, "$multiply only supports numeric types")
        before, kind = kind, widest(kind, value[0])
        amount = number(value)
        if kind == DECIMAL:
            if before != DECIMAL:
                exact = as_decimal(real) if before == DOUBLE else Decimal(whole)
            exact = QUIET.multiply(exact, as_decimal(amount))
            continue
        real *= as_double(amount)
        if kind != DOUBLE:
            whole *= int(amount)
            if not INT64_MIN <= whole <= INT64_MAX:
                kind = DOUBLE
    if kind == DECIMAL:
        return decimal(exact)
    return double(real) if kind == DOUBLE else wrapped(kind, whole)


def _divide(left: Value, right: Value) -> Value:
    if not (is_number(left) and is_number(right)):
        if left[0] in NULLISH or right[0] in NULLISH:
            return NULL_VALUE
        raise refused(16609, "$divide only supports numeric types")
    a, b = number(left), number(right)
    if b == 0:
        raise refused(16608, "can't $divide by zero")
    if DECIMAL in (left[0], right[0]):
        return decimal(QUIET.divide(as_decimal(a), as_decimal(b)))
    return double(as_double(a) / as_double(b))


def _mod(left: Value, right: Value) -> Value:
    if not (is_number(left) and is_number(right)):
        if left[0] in NULLISH or right[0] in NULLISH:
            return NULL_VALUE
        raise refused(16611, "$mod only supports numeric types")
    a, b = number(left), number(right)
    if b == 0:
        code = 5733415 if DECIMAL in (left[0], right[0]) else 16610
        raise refused(code, "can't $mod by zero")
    if DECIMAL in (left[0], right[0]):
        return decimal(_decimal_remainder(as_decimal(a), as_decimal(b)))
    if left[0] == DOUBLE or (right[0] == DOUBLE and not is_integral(right)):
        a, b = as_double(a), as_double(b)
        return double(math.fmod(a, b) if math.isfinite(a) and not is_nan(b) else a * 0.0 + b)
    whole = abs(int(a)) % abs(int(b))
    signed = -whole if a < 0 else whole
    return int64(signed) if INT64 in (left[0], right[0]) else int32(signed)


def _decimal_remainder(a: Decimal, b: Decimal) -> Decimal:
    if a.is_finite() and b.is_infinite():
        return a
    if not a.is_finite() or not b.is_finite():
        return Decimal("NaN")
    wide = Context(prec=max(40, a.adjusted() - b.adjusted() + 80), traps=[])
    return QUIET.create_decimal(wide.remainder(a, b))


def _abs(value: Value) -> Value:
    amount = number(value)
    if isinstance(amount, Decimal):
        return decimal(amount.copy_abs())
    if value[0] == INT64 and amount == INT64_MIN:
        raise refused(28680, "can't take $abs of long long min")
    return wrapped(value[0], abs(amount))


def _power(left: Value, right: Value) -> Value:
    if left[0] in NULLISH or right[0] in NULLISH:
        return NULL_VALUE
    if not is_number(left):
        raise refused(28762, "$pow's base must be numeric")
    if not is_number(right):
        raise refused(28763, "$pow's exponent must be numeric")
    base, exponent = number(left), number(right)
    if base == 0 and not is_nan(exponent) and exponent < 0:
        raise refused(28764, "$pow cannot take a base of 0 and a negative exponent")
    if DECIMAL in (left[0], right[0]):
        raise library("$pow")
    if DOUBLE in (left[0], right[0]):
        return double(_real_power(as_double(base), as_double(exponent)))
    a, b = int(base), int(exponent)
    exact = _whole_power(a, b)
    if exact is None:
        return double(_real_power(float(a), float(b)))
    return int64(exact) if INT64 in (left[0], right[0]) else wrapped(INT32, exact)


def _whole_power(base: int, exponent: int) -> int | None:
    if base in (0, 1) or exponent == 0:
        return 1 if exponent == 0 else base
    if base == -1:
        return 1 if exponent % 2 == 0 else -1
    if not 0 <= exponent < 64:
        return None
    made = base**exponent
    return made if INT64_MIN <= made <= INT64_MAX else None


def _real_power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent == math.floor(exponent) and math.fmod(exponent, 2) != 0
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return -math.nan


def _log(left: Value, right: Value) -> Value:
    if left[0] in NULLISH or right[0] in NULLISH:
        return NULL_VALUE
    if not is_number(left):
        raise refused(28756, "$log's argument must be numeric")
    if not is_number(right):
        raise refused(28757, "$log's base must be numeric")
    amount, base = number(left), number(right)
    if DECIMAL in (left[0], right[0]) and _is_positive(amount) and _is_positive(base) and base != 1:
        raise library("$log")
    amount, base = as_double(amount), as_double(base)
    if not (is_nan(amount) or amount > 0):
        raise refused(28758, "$log's argument must be a positive number")
    if not (is_nan(base) or (base > 0 and base != 1)):
        raise refused(28759, "$log's base must be a positive number not equal to 1")
    return double(math.log(amount) / math.log(base))


def _is_positive(amount: Number) -> bool:
    return not is_nan(amount) and amount > 0


def library(name: str) -> NotEvaluable:
    """The error of decimals that only the server's decimal library computes."""
    return not_here(name, "a decimal needs the server's decimal library")


def null_or(value: Value, name: str) -> bool:
    """Whether an operand is null; an error when it is no number either."""
    if value[0] in NULLISH:
        return True
    if not is_number(value):
        raise refused(28765, f"{name} only supports numeric types")
    return False


def _floor(value: Value) -> Value:
    return _whole(value, "$floor", math.floor, "ROUND_FLOOR")


def _ceil(value: Value) -> Value:
    return _whole(value, "$ceil", math.ceil, "ROUND_CEILING")


def _whole(value: Value, name: str, whole: object, rounding: str) -> Value:
    if null_or(value, name):
        return NULL_VALUE
    amount = number(value)
    if isinstance(amount, int):
        return value
    if isinstance(amount, Decimal):
        if not amount.is_finite():
            return decimal(NOT_A_NUMBER)
        return decimal(amount.quantize(Decimal(1), rounding, QUIET))
    if not math.isfinite(amount) or amount == 0:
        return double(amount)
    return double(math.copysign(float(whole(amount)), amount))  # type: ignore[operator]


def _sqrt(value: Value) -> Value:
    if null_or(value, "$sqrt"):
        return NULL_VALUE
    amount = number(value)
    if not is_nan(amount) and amount < 0:
        raise refused(28714, "$sqrt's argument must be greater than or equal to 0")
    if isinstance(amount, Decimal):
        return decimal(QUIET.sqrt(amount))
    return double(math.sqrt(amount))


def _exp(value: Value) -> Value:
    if null_or(value, "$exp"):
        return NULL_VALUE
    amount = number(value)
    if isinstance(amount, Decimal):
        raise library("$exp")
    try:
        return double(math.exp(amount))
    except OverflowError:
        return double(math.inf)


def _ln(value: Value) -> Value:
    return _logarithm(value, "$ln", 28766)


def _log10(value: Value) -> Value:
    return _logarithm(value, "$log10", 28761)


def _logarithm(value: Value, name: str, code: int) -> Value:
    if null_or(value, name):
        return NULL_VALUE
    amount = number(value)
    if not (is_nan(amount) or amount > 0):
        raise refused(code, f"{name}'s argument must be a positive number")
    if isinstance(amount, Decimal):
        if is_nan(amount):
            return double(math.nan)
        raise library(name)
    return double(math.log(amount) if name == "$ln" else math.log10(amount))


def _abs_or_null(value: Value) -> Value:
    return NULL_VALUE if null_or(value, "$abs") else _abs(value)


def rounder(name: str, rounding: str) -> Callable[..., Value]:
    """``$round`` or ``$trunc``: to a number of places, which may be negative."""

    def apply(value: Value, places: Value = NO_PLACES) -> Value:
        if value[0] in NULLISH:
            return NULL_VALUE
        if not is_number(value):
            raise refused(51081, f"{name} only supports numeric types")
        if places[0] in NULLISH:
            return NULL_VALUE
        if not is_number(places):
            raise refused(16004, "can't convert this BSON type to long")
        count = coerced_long(places)
        if not is_integral(places):
            raise refused(51082, f"precision argument to {name} must be a integral value")
        if not -20 <= count <= 100:
            raise refused(51083, f"cannot apply {name} with precision value {count}")
        return _rounded(value, count, rounding, name)

    return apply


def _rounded(value: Value, places: int, rounding: str, name: str) -> Value:
    amount = number(value)
    if isinstance(amount, int):
        if places >= 0:
            return value
        made = int(Decimal(amount).quantize(Decimal((0, (1,), -places)), rounding, QUIET))
        if not INT64_MIN <= made <= INT64_MAX:
            raise refused(51080, f"invalid conversion from Decimal128 result in {name}")
        if value[0] == INT32 and made < INT32_MIN:
            made += 1 << 32  # the server cuts it to 32 bits
        return int64(made) if value[0] == INT64 else wrapped(INT32, made)
    exact = amount if isinstance(amount, Decimal) else DIGITS_34.create_decimal_from_float(amount)
    if exact.is_infinite():
        return value
    made_exact = _quantized(exact, places, rounding)
    return decimal(made_exact) if isinstance(amount, Decimal) else double(float(made_exact))


def _quantized(exact: Decimal, places: int, rounding: str) -> Decimal:
    """A decimal of that many places; one that has no room for them gets all digits it can."""
    if exact.is_nan():
        return NOT_A_NUMBER
    made = exact.quantize(Decimal((0, (1,), -places)), rounding, QUIET)
    if not made.is_nan():
        return made
    room = max(exact.adjusted() - DIGITS_34.prec + 1, MIN_EXPONENT)
    return exact.quantize(Decimal((0, (1,), room)), rounding, QUIET)


ARITHMETIC = {
    "$add": Operator(_read_add),
    "$subtract": Operator(_read_subtract),
    "$multiply": Operator(lazy(_multiply)),
    "$divide": Operator(binary(_divide)),
    "$mod": Operator(binary(_mod)),
    "$abs": Operator(unary(_abs_or_null)),
    "$pow": Operator(binary(_power), note=NO_DECIMALS),
    "$log": Operator(binary(_log), note=NO_DECIMALS),
    "$floor": Operator(unary(_floor)),
    "$ceil": Operator(unary(_ceil)),
    "$sqrt": Operator(unary(_sqrt)),
    "$exp": Operator(unary(_exp), note=NO_DECIMALS),
    "$ln": Operator(unary(_ln), note=NO_DECIMALS),
    "$log10": Operator(unary(_log10), note=NO_DECIMALS),
    "$round": Operator(eager(rounder("$round", ROUND_HALF_EVEN), 1, 2)),
    "$trunc": Operator(eager(rounder("$trunc", ROUND_DOWN), 1, 2)),
}
