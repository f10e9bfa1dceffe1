"""How the server writes values as strings, and reads numbers from them."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from bson.decimal128 import Decimal128

from tailrace.query.context import refused
from tailrace.query.dates import iso, parts_of
from tailrace.query.values import NULLISH, Value, millis, number, text_bytes
from tailrace.raw.elements import (
    CODE,
    DATE,
    DECIMAL,
    DOUBLE,
    INT32,
    INT64,
    STRING,
    SYMBOL,
    TIMESTAMP,
)

NOT_A_STRING = 16007
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


def coerced(value: Value) -> bytes:
    """A value as a string, for operators that take nearly anything."""
    kind, raw = value
    if kind in (STRING, SYMBOL, CODE):
        return text_bytes(value)
    if kind in NULLISH:
        return b""
    if kind == DOUBLE:
        return f"{number(value):g}".encode()
    if kind in (INT32, INT64, DECIMAL):
        return number_text(value, shortest=False).encode()
    if kind == DATE:
        return iso(millis(value)).encode()
    if kind == TIMESTAMP:
        whole = int.from_bytes(raw, "little")
        return _clock(whole >> 32) + b":%d" % (whole & 0xFFFF_FFFF)
    raise refused(NOT_A_STRING, "can't convert from this BSON type to String")


def _clock(seconds: int) -> bytes:
    """A time as the server shows a timestamp's: without its year."""
    parts = parts_of(seconds * 1000)
    month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][
        parts.month - 1
    ]
    return (f"{month} {parts.day:2} {parts.hour:02}:{parts.minute:02}:{parts.second:02}").encode()


def number_text(value: Value, *, shortest: bool) -> str:
    """A number as ``$toString`` writes it: a double in its fewest digits, or in six."""
    kind, raw = value
    if kind == DECIMAL:
        return str(Decimal128.from_bid(raw))
    if kind == DOUBLE:
        return double_text(float(number(value)), shortest=shortest)
    return str(number(value))


def double_text(amount: float, *, shortest: bool) -> str:
    """A double in the fewest digits that tell it apart, or as C writes ``%g``."""
    if math.isnan(amount):
        return "NaN"
    if math.isinf(amount):
        return "Infinity" if amount > 0 else "-Infinity"
    return repr(amount).removesuffix(".0") if shortest else f"{amount:g}"


def parsed_double(text: str) -> float | None:
    """The double that a string says, or None."""
    if _DECIMAL.fullmatch(text):
        return float(text)
    return _SPECIAL.get(text.lower().removeprefix("+"))


def parsed_integer(text: str, least: int, most: int) -> int | None:
    """The integer that a string says, or None."""
    if not _INTEGER.fullmatch(text) or len(text) > 30:
        return None
    whole = int(text)
    return whole if least <= whole <= most else None


def parsed_decimal(text: str) -> Decimal | None:
    """The decimal that a string says, or None."""
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    special = _SPECIAL.get(text.lower().removeprefix("+"))
    return None if special is None else Decimal(str(special))


_SPECIAL = {
    "inf": math.inf,
    "infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
    "-nan": math.nan,
}
