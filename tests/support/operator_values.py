"""Random BSON values, edge values of every type first, as type byte and bytes.

A pool is named by what it mostly gives; every pool now and then gives anything else.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from decimal import Decimal

from bson.decimal128 import Decimal128

from tailrace.query.values import (
    MISSING,
    Value,
    array,
    boolean,
    date,
    document,
    double,
    int32,
    int64,
    string,
    string_bytes,
)
from tailrace.raw.elements import (
    BINARY,
    CODE,
    CODE_SCOPE,
    DB_POINTER,
    DECIMAL,
    MAX_KEY,
    MIN_KEY,
    NULL,
    OBJECT_ID,
    REGEX,
    SYMBOL,
    TIMESTAMP,
    UNDEFINED,
)

INT32S = (0, 1, -1, 2, 3, 7, 10, -5, 100, 2**31 - 1, -(2**31), 12345)
INT64S = (0, 1, -1, 2, 5, 2**31, -(2**31) - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
DOUBLES = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 3.0, 1 / 3, 1e15, 1e16, 123456.789, 1e300,
    -1e300, 5e-324, 2.0**53, 2.0**63, -(2.0**63), 2.0**31, 1e-5, 1e20, float("inf"),
    float("-inf"), float("nan"),
)  # fmt: skip
DECIMALS = (
    "0", "-0", "0E+3", "1", "-1", "1.0", "1.50", "2.5", "-2.5", "0.1", "100", "1E+2", "1E-5",
    "9999999999999999999999999999999999", "1E+6144", "1E-6176", "-1E+40", "9223372036854775807",
    "9223372036854775808", "2147483648", "3.141592653589793", "NaN", "Infinity", "-Infinity",
)  # fmt: skip
DATES = (
    0, 1, -1, 951_782_400_000, 1_700_000_000_123, 1_711_846_800_000, -2_208_988_800_000,
    253_402_300_799_999, -62_135_596_800_000, 1_609_459_199_999, 1_583_020_800_000,
)  # fmt: skip
STRINGS = (
    "", "a", "A", "abc", "ABC", "äöü", "日本語", "😀x", "a b c", "  pad  ", "1", "-12", "1.5",
    "1e3", "+7",
    "0x1F", " 1", "abcabc", "a.b", "$a", "\u00a0x\u2003", "b", "c", "bc", "nan", "Infinity",
    "5f5f5f5f5f5f5f5f5f5f5f5f", "2024-02-29T12:34:56.789Z", "2024-02-29", "UTC", "+02:30", "İı",
    "true", "9223372036854775808", "2147483648", "a\0b",
)  # fmt: skip


ZONES = (
    "UTC", "GMT", "+00:00", "+02:30", "-0800", "+14", "Europe/Berlin", "America/New_York",
    "Asia/Kolkata", "Australia/Lord_Howe", "nowhere", "",
)  # fmt: skip


def kind_only(kind: int) -> Value:
    return kind, b""


class Values:
    """Values drawn with one source of chance."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.pools: dict[str, Callable[[], Value]] = {
            "number": self.number,
            "small": self.small,
            "string": self.string,
            "array": self.array,
            "numbers": self.numbers,
            "strings": lambda: array(self.string() for _ in range(rng.randrange(4))),
            "object": self.object,
            "objects": lambda: array(self.object() for _ in range(rng.randrange(4))),
            "pairs": self.pairs,
            "date": self.date,
            "moment": self.moment,
            "bool": lambda: boolean(rng.random() < 0.5),
            "null": lambda: rng.choice([kind_only(NULL), MISSING, kind_only(UNDEFINED)]),
            "timestamp": self.timestamp,
            "binary": self.binary,
            "id": lambda: (OBJECT_ID, rng.randbytes(12)),
            "regex": self.regex,
            "other": self.other,
            "any": self.any,
            "zone": lambda: string(rng.choice(ZONES)),
            "year": lambda: int32(rng.choice([1, 1970, 1999, 2000, 2024, 9999, 0, 10_000, -1])),
        }

    def of(self, pool: str) -> Value:
        """Mostly a pool's; one in eight anything, or nothing."""
        if pool not in ("null", "any") and self.rng.random() < 0.12:
            return self.any()
        return self.pools[pool]()

    def number(self) -> Value:
        return self.rng.choice([self._int32, self._int64, self._double, self._decimal])()

    def small(self) -> Value:
        whole = self.rng.randrange(-4, 7)
        return self.rng.choice(
            [int32(whole), int32(whole), int64(whole), double(whole), decimal_value(str(whole))]
        )

    def _int32(self) -> Value:
        return int32(self.rng.choice([*INT32S, self.rng.randrange(-1000, 1000)]))

    def _int64(self) -> Value:
        return int64(self.rng.choice([*INT64S, self.rng.randrange(-(2**40), 2**40)]))

    def _double(self) -> Value:
        return double(self.rng.choice([*DOUBLES, self.rng.uniform(-100, 100)]))

    def _decimal(self) -> Value:
        drawn = f"{self.rng.randrange(-(10**6), 10**6)}E{self.rng.randrange(-8, 3)}"
        return decimal_value(self.rng.choice([*DECIMALS, drawn]))

    def string(self) -> Value:
        return string(self.rng.choice(STRINGS))

    def date(self) -> Value:
        return date(self.rng.choice([*DATES, self.rng.randrange(-(10**12), 4 * 10**12)]))

    def moment(self) -> Value:
        return self.rng.choice([self.date, self.date, self.timestamp, self.pools["id"]])()

    def timestamp(self) -> Value:
        at = self.rng.choice([1, 1_700_000_000, 2_000_000_000])
        return TIMESTAMP, struct.pack("<II", self.rng.choice([0, 1, 7]), at)

    def binary(self) -> Value:
        raw = self.rng.randbytes(self.rng.choice([0, 1, 4, 16]))
        return BINARY, struct.pack("<i", len(raw)) + bytes([self.rng.choice([0, 4, 128])]) + raw

    def regex(self) -> Value:
        pattern = self.rng.choice(
            ["a", "^a", "b$", ".", "[a-c]+", "(a)(x)?", "ö", "\\d+", "a|b", "(?i)A", "", "\\w\\s"]
        )
        return REGEX, pattern.encode() + b"\0" + self.rng.choice(
            ["", "i", "m", "s", "x"]
        ).encode() + b"\0"

    def numbers(self) -> Value:
        return array(self.number() for _ in range(self.rng.randrange(5)))

    def array(self) -> Value:
        return array(self._inside() for _ in range(self.rng.randrange(5)))

    def _inside(self) -> Value:
        return self.rng.choice(
            [self.small, self.small, self.string, self.pools["bool"], self.any, self.object]
        )()

    def object(self) -> Value:
        names = self.rng.sample([b"a", b"b", b"k", b"v", b"x.y", b"$d", b""], self.rng.randrange(4))
        return document((name, self._leaf()) for name in names)

    def _leaf(self) -> Value:
        return self.rng.choice([self.small, self.string, self.date, self.pools["bool"]])()

    def pairs(self) -> Value:
        """What ``$arrayToObject`` takes, nearly always."""
        form = self.rng.random() < 0.5
        made = []
        for _ in range(self.rng.randrange(4)):
            key, value = self.string(), self._leaf()
            parts = ((b"k", key), (b"v", value))
            made.append(array((key, value)) if form else document(parts))
        return array(made)

    def other(self) -> Value:
        return self.rng.choice(
            [
                kind_only(MIN_KEY),
                kind_only(MAX_KEY),
                (CODE, string_bytes(b"code")[1]),
                (SYMBOL, string_bytes(b"symbol")[1]),
                (DB_POINTER, string_bytes(b"db.c")[1] + bytes(12)),
                self.regex(),
                self.binary(),
                (CODE_SCOPE, _scoped(b"f", document([(b"a", int32(1))])[1])),
            ]
        )

    def any(self) -> Value:
        pool = self.rng.choice(
            [
                "number",
                "string",
                "array",
                "object",
                "date",
                "bool",
                "null",
                "timestamp",
                "binary",
                "id",
                "other",
            ]
        )
        return self.pools[pool]()


def _scoped(code: bytes, scope: bytes) -> bytes:
    body = string_bytes(code)[1] + scope
    return struct.pack("<i", len(body) + 4) + body


def decimal_value(text: str) -> Value:
    return DECIMAL, Decimal128(Decimal(text)).bid
