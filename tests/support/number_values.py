"""Random numbers where their keys are hardest: beside doubles, powers and the ends of ranges."""

from __future__ import annotations

import decimal
import random
import struct
from decimal import Decimal

from bson.decimal128 import Decimal128, create_decimal128_context
from bson.int64 import Int64

WIDE = decimal.Context(prec=60, Emin=-99_999, Emax=99_999)
DIGITS = 34
BOUNDS = (
    1.7976931348623157e308,  # the largest double
    2.0**63,
    2.0**55,
    2.0**53,
    2.0**-255,
    2.0**-256,
    2.2250738585072014e-308,  # the least normal double
    5e-324,
)


class Numbers:
    """Numbers of every type drawn from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def number(self) -> Int64 | float | Decimal128:
        pick = self.rng.random()
        if pick < 0.1:
            return Int64(self.rng.getrandbits(self.rng.randrange(1, 64)) * self.rng.choice([1, -1]))
        if pick < 0.25:
            return self.double() * self.rng.choice([1, -1])
        return self.decimal()

    def double(self) -> float:
        """A positive double."""
        rng = self.rng
        found = rng.choice(
            [
                abs(struct.unpack("<d", rng.randbytes(8))[0]),
                2.0 ** rng.randrange(-1074, 1024) * (1 + rng.randrange(-1, 3) * 2.0**-52),
                float(rng.getrandbits(rng.randrange(50, 70))),
                float(f"1e{rng.randrange(-323, 308)}"),
                round(rng.uniform(0, 1000), rng.randrange(1, 15)),
                rng.uniform(0, 2.3e-308),
                rng.getrandbits(rng.randrange(1, 52)) * 5e-324,
                rng.choice(BOUNDS),
            ]
        )
        return found if 0 < found < float("inf") else 1.0

    def decimal(self) -> Decimal128:
        """A decimal of any size, or a few units beside a double."""
        rng = self.rng
        if rng.random() < 0.3:
            digits = rng.getrandbits(rng.randrange(1, 113))
            found = WIDE.scaleb(Decimal(digits), rng.randrange(-6176, 6111))
        else:
            rounding = rng.choice([decimal.ROUND_UP, decimal.ROUND_DOWN])
            precision = rng.choice([15, 16, 17, 33, DIGITS, DIGITS])
            near = decimal.Context(prec=precision, rounding=rounding).create_decimal_from_float(
                self.double()
            )
            _, shown, exponent = near.as_tuple()
            assert isinstance(exponent, int)
            room = DIGITS - len(shown)
            unit = Decimal((0, (1,), exponent - rng.choice([0, room, rng.randrange(room + 1)])))
            found = WIDE.fma(unit, Decimal(rng.randrange(-3, 4)), near)
        context = create_decimal128_context()
        return Decimal128(context.create_decimal(WIDE.multiply(found, rng.choice([1, -1]))))
