"""Sines and their kin over doubles; of decimals, only what the server's library is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from tailrace.query.context import refused
from tailrace.query.expressions.arithmetic import library, null_or
from tailrace.query.expressions.numbers import QUIET, as_decimal, as_double, is_nan, is_number
from tailrace.query.expressions.parser import Operator, Reader
from tailrace.query.expressions.reading import binary, unary
from tailrace.query.values import NULL_VALUE, NULLISH, Value, decimal, double, number
from tailrace.raw.elements import DECIMAL

OUT_OF_BOUNDS = 50989
PI = Decimal("3.141592653589793238462643383279502884")
DECIMALS = "of decimals only on a server: they need its decimal library"


def _bounded(
    name: str, function: Callable[[float], float], low: float, high: float, *, closed: bool
) -> Reader:
    def apply(value: Value) -> Value:
        if null_or(value, name):
            return NULL_VALUE
        amount = number(value)
        if not is_nan(amount):
            inside = low <= amount <= high if closed else low < amount < high
            if not inside:
                raise refused(OUT_OF_BOUNDS, f"cannot apply {name} to this value")
        if value[0] == DECIMAL:
            raise library(name)
        return double(_answered(function, as_double(amount)))

    return unary(apply)


def _answered(function: Callable[[float], float], amount: float) -> float:
    """Infinity where Python would raise."""
    try:
        return function(amount)
    except OverflowError:
        return math.copysign(math.inf, amount) if function is math.sinh else math.inf
    except ValueError:
        return math.copysign(math.inf, amount) if function is math.atanh else math.nan


def _atan2(left: Value, right: Value) -> Value:
    if left[0] in NULLISH:
        return NULL_VALUE
    if not is_number(left):
        raise refused(51044, "$atan2 only supports numeric types")
    if right[0] in NULLISH:
        return NULL_VALUE
    if not is_number(right):
        raise refused(51045, "$atan2 only supports numeric types")
    if DECIMAL in (left[0], right[0]):
        raise library("$atan2")
    return double(math.atan2(as_double(number(left)), as_double(number(right))))


def _turned(name: str, times: float, exact: Callable[[Decimal], Decimal]) -> Reader:
    def apply(value: Value) -> Value:
        if null_or(value, name):
            return NULL_VALUE
        amount = number(value)
        if isinstance(amount, Decimal):
            return decimal(exact(as_decimal(amount)))
        return double(as_double(amount) * times)

    return unary(apply)


INF = math.inf
BOUNDS: dict[str, tuple[Callable[[float], float], float, float, bool]] = {
    "$sin": (math.sin, -INF, INF, False),
    "$cos": (math.cos, -INF, INF, False),
    "$tan": (math.tan, -INF, INF, False),
    "$asin": (math.asin, -1, 1, True),
    "$acos": (math.acos, -1, 1, True),
    "$atan": (math.atan, -INF, INF, True),
    "$sinh": (math.sinh, -INF, INF, True),
    "$cosh": (math.cosh, -INF, INF, True),
    "$tanh": (math.tanh, -INF, INF, True),
    "$asinh": (math.asinh, -INF, INF, True),
    "$acosh": (math.acosh, 1, INF, True),
    "$atanh": (math.atanh, -1, 1, True),
}
"""Each function and where it is defined; the last says whether the ends belong to it."""

TRIGONOMETRY = {
    **{
        name: Operator(_bounded(name, function, low, high, closed=closed), note=DECIMALS)
        for name, (function, low, high, closed) in BOUNDS.items()
    },
    "$atan2": Operator(binary(_atan2), note=DECIMALS),
    "$degreesToRadians": Operator(
        _turned(
            "$degreesToRadians",
            math.pi / 180,
            lambda amount: QUIET.multiply(amount, QUIET.divide(PI, Decimal(180))),
        )
    ),
    "$radiansToDegrees": Operator(
        _turned(
            "$radiansToDegrees",
            180 / math.pi,
            lambda amount: QUIET.multiply(amount, QUIET.divide(Decimal(180), PI)),
        )
    ),
}
