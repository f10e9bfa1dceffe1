"""Types: what a value is, and turning it into another type.

One table from the pair of types to the conversion. What a conversion cannot do is
``ConversionFailure``; ``onError`` takes that, and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

from tailrace.errors import ServerError
from tailrace.query.context import Context, not_here, refused
from tailrace.query.dates import days_of, iso
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.numbers import as_decimal, as_double
from tailrace.query.expressions.parser import Operator, Reader, Scope, operands, parse
from tailrace.query.expressions.reading import arguments, counted, required, unary
from tailrace.query.expressions.written import (
    number_text,
    parsed_decimal,
    parsed_double,
    parsed_integer,
)
from tailrace.query.type_names import NAME_OF, NAMES
from tailrace.query.values import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    NULL_VALUE,
    NULLISH,
    NUMBERS,
    TRUE,
    Value,
    boolean,
    date,
    decimal,
    double,
    int32,
    int64,
    millis,
    number,
    string,
    text,
    truthy,
)
from tailrace.raw.elements import (
    BOOL,
    DATE,
    DECIMAL,
    DOUBLE,
    INT32,
    INT64,
    MIN_KEY,
    OBJECT_ID,
    STRING,
    TIMESTAMP,
)

CONVERSION_FAILURE, BAD_VALUE = 241, 2
Conversion = Callable[[Value], Value]
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{24}", re.ASCII)
_DATE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
"""The one form of dates that is read here; the server's reader knows very many."""


def failed(why: str) -> ServerError:
    """The error of a value that has no such conversion."""
    return refused(CONVERSION_FAILURE, f"{why} in $convert with no onError value")


def _bounded(value: Value, least: int, most: int) -> int:
    amount = number(value)
    if isinstance(amount, float) and not math.isfinite(amount):
        raise failed("Attempt to convert infinity or NaN to integer")
    if isinstance(amount, Decimal) and not amount.is_finite():
        raise failed("Attempt to convert infinity or NaN to integer")
    whole = int(amount)
    if not least <= whole <= most:
        raise failed("Conversion would overflow target type")
    return whole


def _to_int(value: Value) -> Value:
    return int32(_bounded(value, INT32_MIN, INT32_MAX))


def _to_long(value: Value) -> Value:
    return int64(_bounded(value, INT64_MIN, INT64_MAX))


def _to_date(value: Value) -> Value:
    return date(_bounded(value, INT64_MIN, INT64_MAX))


def _to_double(value: Value) -> Value:
    amount = number(value)
    made = as_double(amount)
    exact = isinstance(amount, Decimal) and amount.is_finite()
    if exact and (math.isinf(made) or (not made and amount != 0)):
        raise failed("Conversion would overflow target type")
    return double(made)


def _to_decimal(value: Value) -> Value:
    return decimal(as_decimal(number(value)))


def _read(read: Callable[[str], Value | None]) -> Conversion:
    def convert(value: Value) -> Value:
        made = read(text(value))
        if made is None:
            raise failed("Failed to parse number")
        return made

    return convert


def _read_int(words: str) -> Value | None:
    whole = parsed_integer(words, INT32_MIN, INT32_MAX)
    return None if whole is None else int32(whole)


def _read_long(words: str) -> Value | None:
    whole = parsed_integer(words, INT64_MIN, INT64_MAX)
    return None if whole is None else int64(whole)


def _read_double(words: str) -> Value | None:
    amount = parsed_double(words)
    return None if amount is None else double(amount)


def _read_decimal(words: str) -> Value | None:
    amount = parsed_decimal(words)
    return None if amount is None else decimal(amount)


def _read_object_id(value: Value) -> Value:
    words = text(value)
    if not _OBJECT_ID.fullmatch(words):
        raise failed("Failed to parse objectId")
    return OBJECT_ID, bytes.fromhex(words)


def read_date(value: Value) -> Value:
    """A date from a string in ISO 8601's common form; others are left to a server."""
    found = _DATE.fullmatch(text(value))
    if found is None:
        raise not_here("$dateFromString", "only ISO 8601 dates like 2026-11-19T12:00:00Z are read")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    in_month = days_of(year, month + 1, 1) - days_of(year, month, 1)
    if not (
        1 <= month <= 12 and 1 <= day <= in_month and hour < 24 and minute < 60 and second < 60
    ):
        raise not_here("$dateFromString", "this date is out of the calendar")
    thousandths = int((found[7] or "0").ljust(3, "0"))
    zone = found[8] or "Z"
    away = 0
    if zone != "Z":
        away = (int(zone[1:3]) * 60 + int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    seconds = ((days_of(year, month, day) * 24 + hour) * 60 + minute - away) * 60 + second
    return date(seconds * 1000 + thousandths)


def _moment_of_id(value: Value) -> Value:
    return date(int.from_bytes(value[1][:4], "big", signed=True) * 1000)


def _moment_of_timestamp(value: Value) -> Value:
    return date((int.from_bytes(value[1], "little") >> 32) * 1000)


def _bool(value: Value) -> Value:
    return boolean(truthy(value))


def _same(value: Value) -> Value:
    return value


def _said(value: Value) -> Value:
    return string(number_text(value, shortest=True))


def _said_in_six_digits(value: Value) -> Value:
    return string(number_text(value, shortest=False))


def _always(value: Value) -> Value:
    return TRUE


CONVERSIONS: dict[tuple[int, int], Conversion] = {
    **{(kind, BOOL): _always for kind in NAME_OF},
    **{(kind, BOOL): _bool for kind in NUMBERS},
    **{(kind, STRING): _said for kind in NUMBERS},
    **{(kind, DOUBLE): _to_double for kind in NUMBERS},
    **{(kind, INT32): _to_int for kind in NUMBERS},
    **{(kind, INT64): _to_long for kind in NUMBERS},
    **{(kind, DECIMAL): _to_decimal for kind in NUMBERS},
    **{
        (kind, kind): _same
        for kind in (DOUBLE, STRING, OBJECT_ID, BOOL, DATE, INT32, INT64, DECIMAL)
    },
    **{(kind, DATE): _to_date for kind in (DOUBLE, INT64, DECIMAL)},
    (STRING, DOUBLE): _read(_read_double),
    (STRING, INT32): _read(_read_int),
    (STRING, INT64): _read(_read_long),
    (STRING, DECIMAL): _read(_read_decimal),
    (STRING, OBJECT_ID): _read_object_id,
    (STRING, DATE): read_date,
    (OBJECT_ID, STRING): lambda value: string(value[1].hex()),
    (OBJECT_ID, DATE): _moment_of_id,
    (BOOL, STRING): lambda value: string("true" if value == TRUE else "false"),
    (BOOL, DOUBLE): lambda value: double(float(value == TRUE)),
    (BOOL, INT32): lambda value: int32(int(value == TRUE)),
    (BOOL, INT64): lambda value: int64(int(value == TRUE)),
    (BOOL, DECIMAL): lambda value: decimal(Decimal(int(value == TRUE))),
    (DATE, STRING): lambda value: string(iso(millis(value))),
    (DATE, INT64): lambda value: int64(millis(value)),
    (DATE, DOUBLE): lambda value: double(float(millis(value))),
    (DATE, DECIMAL): lambda value: decimal(Decimal(millis(value))),
    (TIMESTAMP, DATE): _moment_of_timestamp,
}
"""From a value's type and the one that is wanted to what is done."""


SHORTEST_SINCE = (6, 1)
"""Since when ``$toString`` writes a double so that it can be read back."""


def converted(value: Value, wanted: int, context: Context) -> Value:
    """A value under another type."""
    pair = value[0], wanted
    convert = CONVERSIONS.get(pair)
    if pair == (DOUBLE, STRING) and not context.since(*SHORTEST_SINCE):
        convert = _said_in_six_digits
    if convert is None:
        names = NAME_OF.get(value[0]), NAME_OF.get(wanted)
        raise failed(f"Unsupported conversion from {names[0]} to {names[1]}")
    return convert(value)


CONVERT_PARTS = ("input", "to", "onError", "onNull")


def _convert(name: str, argument: Value, scope: Scope) -> Node:
    given = arguments(name, argument, CONVERT_PARTS, not_object=9, unknown=9)
    required(name, given, {"input": 9, "to": 9})
    parts = {word: parse(value, scope) for word, value in given.items()}

    def run(frame: Frame) -> Value:
        to, value = parts["to"].run(frame), parts["input"].run(frame)
        wanted = None if to[0] in NULLISH else _target(to)
        if value[0] in NULLISH:
            return parts["onNull"].run(frame) if "onNull" in parts else NULL_VALUE
        if wanted is None:
            return NULL_VALUE
        try:
            return converted(value, wanted, scope.context)
        except ServerError as error:
            if error.code != CONVERSION_FAILURE or "onError" not in parts:
                raise
            return parts["onError"].run(frame)

    return folded(run, list(parts.values()))


def _target(value: Value) -> int:
    if value[0] == STRING:
        name = text(value)
        if name not in NAMES:
            raise refused(BAD_VALUE, f"Unknown type name: {name}")
        return NAMES[name]
    if value[0] not in NUMBERS:
        raise refused(9, "$convert's 'to' argument must be a string or number")
    amount = number(value)
    if (isinstance(amount, float) and not math.isfinite(amount)) or amount != int(amount):
        raise refused(9, "$convert's 'to' argument is not an integer")
    if amount == NUMBER_OF_MIN_KEY:
        return MIN_KEY
    if amount not in NAME_OF:
        raise refused(
            9, f"In $convert, numeric 'to' argument {amount} does not correspond to a BSON type"
        )
    return int(amount)


def _shorthand(wanted: int) -> Reader:
    def read(name: str, argument: Value, scope: Scope) -> Node:
        nodes = operands(argument, scope)
        if len(nodes) != 1:
            raise refused(50723, f"{name} requires a single argument, got {len(nodes)}")
        counted(name, nodes, 1, 1)

        def run(frame: Frame) -> Value:
            value = nodes[0].run(frame)
            return NULL_VALUE if value[0] in NULLISH else converted(value, wanted, scope.context)

        return folded(run, nodes)

    return read


def _type_name(value: Value) -> Value:
    return string(NAME_OF[value[0]])


NUMBER_OF_MIN_KEY = -1
ONLY_ISO = "strings are read as dates in ISO 8601's common form only"

CONVERSION_OPERATORS = {
    "$type": Operator(unary(_type_name)),
    "$isNumber": Operator(unary(lambda value: boolean(value[0] in NUMBERS)), since=(4, 4, 0)),
    "$convert": Operator(_convert, note=ONLY_ISO),
    "$toBool": Operator(_shorthand(BOOL)),
    "$toDate": Operator(_shorthand(DATE), note=ONLY_ISO),
    "$toDecimal": Operator(_shorthand(DECIMAL)),
    "$toDouble": Operator(_shorthand(DOUBLE)),
    "$toInt": Operator(_shorthand(INT32)),
    "$toLong": Operator(_shorthand(INT64)),
    "$toObjectId": Operator(_shorthand(OBJECT_ID)),
    "$toString": Operator(_shorthand(STRING)),
}
