"""Sums that lose as little as the server's: doubles in two parts, decimals apart."""

from __future__ import annotations

import math
from decimal import Decimal

from tailrace.query.expressions.numbers import EXACT, QUIET, as_decimal, is_number, widest, wrapped
from tailrace.query.values import INT64_MAX, INT64_MIN, Value, decimal, double, number
from tailrace.raw.elements import DECIMAL, DOUBLE, INT32


class Total:
    """A sum that loses as little as the server's: doubles in two, decimals apart."""

    def __init__(self) -> None:
        self.kind = INT32
        self.count = 0
        self._high = self._low = 0.0
        self._special = 0.0
        self._exact = Decimal(0)
        self._whole = 0
        self._only_whole = True

    def add(self, value: Value) -> None:
        """One more value; what is no number is left out."""
        if not is_number(value):
            return
        self.count += 1
        self.kind = widest(self.kind, value[0])
        amount = number(value)
        if isinstance(amount, Decimal):
            self._exact = QUIET.add(self._exact, amount)
        elif isinstance(amount, int):
            self._whole += amount
            # The low part first, as the server splits an int64.
            for part in (float(amount),) if value[0] == INT32 else _halves(amount):
                self._add_double(part)
        else:
            self._only_whole = False
            self._add_double(amount)

    def _add_double(self, amount: float) -> None:
        self._special += amount
        added, lost = _two_sum(amount, self._low)
        self._high, self._low = _two_sum(self._high, added)
        self._low += lost

    @property
    def real(self) -> float:
        """The sum of all but the decimals; the server shows the high part alone."""
        return self._special if math.isnan(self._high) else self._high

    @property
    def exact(self) -> Decimal:
        """The sum with the decimals."""
        if not math.isfinite(self.real):
            return QUIET.add(self._exact, as_decimal(self.real))
        high, low = map(QUIET.create_decimal_from_float, (self._high, self._low))
        return QUIET.add(self._exact, QUIET.add(high, low))

    @property
    def rest(self) -> Decimal:
        """The sum of all but the decimals, with nothing lost."""
        if self._only_whole:
            return Decimal(self._whole)
        if not math.isfinite(self.real):
            return as_decimal(self.real)
        return EXACT.add(Decimal(self._high), Decimal(self._low))

    def value(self) -> Value:
        """The sum, under the widest type that was met."""
        if self.kind == DECIMAL:
            return decimal(self.exact)
        if self.kind == DOUBLE:
            return double(self.real)
        if not INT64_MIN <= self._whole <= INT64_MAX:
            return double(self.real)
        return wrapped(self.kind, self._whole)


def _two_sum(left: float, right: float) -> tuple[float, float]:
    """Knuth's sum of two: what it is, and what rounding took from it."""
    made = left + right
    back = made - right
    return made, (left - back) + (right - (made - back))


def _halves(whole: int) -> tuple[float, ...]:
    """An int64 as two doubles without loss; both are always added."""
    high = int(math.copysign(abs(whole) >> 32 << 32, whole))
    return float(whole - high), float(high)
