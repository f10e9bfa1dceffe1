"""Dates: their parts in any time zone, as a document, as text, and put together again."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.query.context import refused
from tailrace.query.dates import UTC, Parts, Zone, days_of, parts_of, zone_of
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.numbers import whole_of
from tailrace.query.expressions.parser import Operator, Reader, Scope, operands, parse
from tailrace.query.expressions.reading import arguments, required
from tailrace.query.values import (
    FALSE,
    INT64_MAX,
    INT64_MIN,
    NULL_VALUE,
    NULLISH,
    TRUE,
    Value,
    date,
    document,
    fields,
    int32,
    int64,
    millis,
    string,
    text,
)
from tailrace.raw.elements import ARRAY, DATE, OBJECT, OBJECT_ID, STRING, TIMESTAMP

NO_DATE = 16006
DATE_OVERFLOW = 159
ZONE_NO_STRING, PART_ZONE_NO_STRING = 40517, 40533
YEARS = 18537
IN_UTC = "%Y-%m-%dT%H:%M:%S.%LZ"


def moment(value: Value) -> int:
    """The milliseconds of a date, a timestamp or an ObjectId."""
    kind, raw = value
    if kind == DATE:
        return millis(value)
    if kind == TIMESTAMP:
        return (int.from_bytes(raw, "little") >> 32) * 1000
    if kind == OBJECT_ID:
        return int.from_bytes(raw[:4], "big", signed=True) * 1000
    raise refused(NO_DATE, "can't convert from this BSON type to Date")


def zone(node: Node | None, frame: Frame, no_string: int = ZONE_NO_STRING) -> Zone | None:
    """The zone that an operand names: UTC without one, None for null."""
    if node is None:
        return UTC
    value = node.run(frame)
    if value[0] in NULLISH:
        return None
    if value[0] != STRING:
        raise refused(no_string, "timezone must evaluate to a string")
    return zone_of(text(value))


def _part(show: Callable[[Parts], Value]) -> Reader:
    def read(name: str, argument: Value, scope: Scope) -> Node:
        given = _date_and_zone(name, argument, scope)
        source, place = given["date"], given.get("timezone")

        def run(frame: Frame) -> Value:
            value = source.run(frame)
            if value[0] in NULLISH:
                return NULL_VALUE
            at = moment(value)
            here = zone(place, frame, PART_ZONE_NO_STRING)
            return NULL_VALUE if here is None else show(parts_of(at, here))

        return folded(run, list(given.values()))

    return read


def _date_and_zone(name: str, argument: Value, scope: Scope) -> dict[str, Node]:
    if argument[0] == OBJECT and not _is_operator(argument):
        given = arguments(name, argument, ("date", "timezone"), not_object=40539, unknown=40535)
        required(name, given, {"date": 40539})
        return {word: parse(value, scope) for word, value in given.items()}
    nodes = operands(argument, scope)
    if argument[0] == ARRAY and len(nodes) != 1:
        raise refused(40536, f"{name} accepts exactly one argument if given an array")
    return {"date": nodes[0]}


def _is_operator(value: Value) -> bool:
    names = [name for name, _ in fields(value)]
    return bool(names) and names[0].startswith(b"$")


def _to_parts(name: str, argument: Value, scope: Scope) -> Node:
    allowed = ("date", "timezone", "iso8601")
    given = arguments(name, argument, allowed, not_object=40524, unknown=40520)
    required(name, given, {"date": 40522})
    nodes = {word: parse(value, scope) for word, value in given.items()}

    def run(frame: Frame) -> Value:
        value = nodes["date"].run(frame)
        here = zone(nodes.get("timezone"), frame)
        if here is None:
            return NULL_VALUE
        iso = nodes["iso8601"].run(frame) if "iso8601" in nodes else None
        if iso is not None and iso[0] in NULLISH:
            return NULL_VALUE
        if iso is not None and iso not in (TRUE, FALSE):
            raise refused(40521, "iso8601 must evaluate to a bool")
        if value[0] in NULLISH:
            return NULL_VALUE
        parts = parts_of(moment(value), here)
        first = (
            (
                (b"isoWeekYear", parts.iso_week_year),
                (b"isoWeek", parts.iso_week),
                (b"isoDayOfWeek", parts.iso_weekday),
            )
            if iso == TRUE
            else ((b"year", parts.year), (b"month", parts.month), (b"day", parts.day))
        )
        clock = (
            (b"hour", parts.hour),
            (b"minute", parts.minute),
            (b"second", parts.second),
            (b"millisecond", parts.millisecond),
        )
        return document((word, int32(number)) for word, number in (*first, *clock))

    return folded(run, list(nodes.values()))


def _offset(parts: Parts) -> str:
    minutes = abs(parts.offset_ms) // 60_000
    return f"{'-' if parts.offset_ms < 0 else '+'}{minutes // 60:02}{minutes % 60:02}"


def _offset_minutes(parts: Parts) -> str:
    minutes = abs(parts.offset_ms) // 60_000
    return str(-minutes if parts.offset_ms < 0 else minutes)


MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
SHOWN: dict[str, Callable[[Parts], str]] = {
    "%": lambda parts: "%",
    "Y": lambda parts: f"{parts.year:04}",
    "G": lambda parts: f"{parts.iso_week_year:04}",
    "m": lambda parts: f"{parts.month:02}",
    "d": lambda parts: f"{parts.day:02}",
    "H": lambda parts: f"{parts.hour:02}",
    "M": lambda parts: f"{parts.minute:02}",
    "S": lambda parts: f"{parts.second:02}",
    "L": lambda parts: f"{parts.millisecond:03}",
    "j": lambda parts: f"{parts.day_of_year:03}",
    "w": lambda parts: str(parts.weekday + 1),
    "u": lambda parts: str(parts.iso_weekday),
    "U": lambda parts: f"{parts.week:02}",
    "V": lambda parts: f"{parts.iso_week:02}",
    "z": _offset,
    "Z": _offset_minutes,
}
"""What each letter of a format shows."""
SHOWN_SINCE_7 = {
    "b": lambda parts: MONTHS[parts.month - 1][:3],
    "B": lambda parts: MONTHS[parts.month - 1],
}


def _check_format(value: Value, letters: dict[str, Callable[[Parts], str]]) -> None:
    if value[0] != STRING:
        raise refused(18533, "$dateToString requires that 'format' be a string")
    words = text(value)
    at = 0
    while at < len(words):
        if words[at] == "%":
            at += 1
            if at == len(words):
                raise refused(18535, "Unmatched '%' at end of format string")
            if words[at] not in letters:
                raise refused(18536, f"Invalid format character '%{words[at]}' in format string")
        at += 1


def _shown(words: str, parts: Parts, letters: dict[str, Callable[[Parts], str]]) -> str:
    if not 0 <= parts.year <= 9999:
        raise refused(YEARS, "dates are only written of the years 0 to 9999")
    made, at = [], 0
    while at < len(words):
        if words[at] == "%":
            at += 1
            made.append(letters[words[at]](parts))
        else:
            made.append(words[at])
        at += 1
    return "".join(made)


def _to_string(name: str, argument: Value, scope: Scope) -> Node:
    allowed = ("format", "date", "timezone", "onNull")
    given = arguments(name, argument, allowed, not_object=18629, unknown=18534)
    required(name, given, {"date": 18628})
    letters = {**SHOWN, **(SHOWN_SINCE_7 if scope.context.since(7, 0) else {})}
    nodes = {word: parse(value, scope) for word, value in given.items()}
    fixed = nodes["format"].constant if "format" in nodes else None
    if fixed is not None and fixed[0] not in NULLISH:
        _check_format(fixed, letters)

    def run(frame: Frame) -> Value:
        value = nodes["date"].run(frame)
        form = string(IN_UTC)
        if "format" in nodes:
            form = nodes["format"].run(frame)
            if form[0] not in NULLISH:
                _check_format(form, letters)
        here = zone(nodes.get("timezone"), frame)
        if value[0] in NULLISH:
            return nodes["onNull"].run(frame) if "onNull" in nodes else NULL_VALUE
        if here is None or form[0] in NULLISH:
            return NULL_VALUE
        return string(_shown(text(form), parts_of(moment(value), here), letters))

    return folded(run, list(nodes.values()))


CLOCK = ("hour", "minute", "second", "millisecond")
CALENDAR = ("year", "month", "day")
UNBOUNDED = frozenset(("year", "isoWeekYear", "second", "millisecond"))
"""The years have bounds of their own, checked last."""
WEEKS = ("isoWeekYear", "isoWeek", "isoDayOfWeek")


def _from_parts(name: str, argument: Value, scope: Scope) -> Node:
    allowed = (*CALENDAR, *WEEKS, *CLOCK, "timezone")
    given = arguments(name, argument, allowed, not_object=40519, unknown=40518)
    if "year" not in given and "isoWeekYear" not in given:
        raise refused(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
    if "year" in given and any(word in given for word in WEEKS):
        raise refused(40489, "$dateFromParts does not allow mixing natural dates with ISO dates")
    if "isoWeekYear" in given and any(word in given for word in CALENDAR):
        raise refused(40525, "$dateFromParts does not allow mixing ISO dates with natural dates")
    nodes = {word: parse(value, scope) for word, value in given.items()}
    days = WEEKS if "isoWeekYear" in given else CALENDAR

    def run(frame: Frame) -> Value:
        here = zone(nodes.get("timezone"), frame)
        if here is None:
            return NULL_VALUE
        found: list[int] = []
        for word in (*days, *CLOCK):
            number = _integer(word, nodes.get(word), frame, 0 if word in CLOCK else 1)
            if number is None:
                return NULL_VALUE
            found.append(number)
        if not 1 <= found[0] <= 9999:
            code = 31095 if days is WEEKS else 40523
            raise refused(code, f"'{days[0]}' must be in the range 1 to 9999")
        return _joined(found, here, iso=days is WEEKS)

    return folded(run, list(nodes.values()))


def _integer(word: str, node: Node | None, frame: Frame, default: int) -> int | None:
    if node is None:
        return default
    value = node.run(frame)
    if value[0] in NULLISH:
        return None
    whole = whole_of(value)
    if whole is None:
        raise refused(40515, f"'{word}' must evaluate to an integer")
    if word not in UNBOUNDED and not -(2**15) <= whole < 2**15:
        raise refused(31034, f"'{word}' must evaluate to a value in the range [-32768, 32767]")
    return whole


def _joined(found: list[int], here: Zone, *, iso: bool) -> Value:
    first, second, third, hour, minute, seconds, thousandths = found
    if iso:
        fourth = days_of(first, 1, 4)
        days = fourth - (fourth + 3) % 7 + (second - 1) * 7 + third - 1
    else:
        days = days_of(first, second, third)
    local = (((days * 24 + hour) * 60 + minute) * 60 + seconds) * 1000 + thousandths
    if not INT64_MIN <= local <= INT64_MAX:
        raise refused(DATE_OVERFLOW, "the date is out of what a date can be")
    return date(here.to_utc(local))


DATES = {
    "$year": Operator(_part(lambda parts: int32(parts.year))),
    "$month": Operator(_part(lambda parts: int32(parts.month))),
    "$dayOfMonth": Operator(_part(lambda parts: int32(parts.day))),
    "$hour": Operator(_part(lambda parts: int32(parts.hour))),
    "$minute": Operator(_part(lambda parts: int32(parts.minute))),
    "$second": Operator(_part(lambda parts: int32(parts.second))),
    "$millisecond": Operator(_part(lambda parts: int32(parts.millisecond))),
    "$dayOfYear": Operator(_part(lambda parts: int32(parts.day_of_year))),
    "$dayOfWeek": Operator(_part(lambda parts: int32(parts.weekday + 1))),
    "$week": Operator(_part(lambda parts: int32(parts.week))),
    "$isoDayOfWeek": Operator(_part(lambda parts: int32(parts.iso_weekday))),
    "$isoWeek": Operator(_part(lambda parts: int32(parts.iso_week))),
    "$isoWeekYear": Operator(_part(lambda parts: int64(parts.iso_week_year))),
    "$dateToParts": Operator(_to_parts),
    "$dateToString": Operator(_to_string),
    "$dateFromParts": Operator(_from_parts),
}
