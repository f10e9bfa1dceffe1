"""Strings: joining, cutting, searching, changing; by code point and by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tailrace.query.context import refused
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.numbers import coerced_long, is_integral, is_number
from tailrace.query.expressions.parser import Operator, Scope
from tailrace.query.expressions.reading import (
    arguments,
    binary,
    eager,
    lazy,
    named,
    required,
    unary,
)
from tailrace.query.expressions.written import coerced
from tailrace.query.values import (
    NULL_VALUE,
    NULLISH,
    Value,
    array,
    int32,
    string,
    string_bytes,
    text,
    text_bytes,
)
from tailrace.raw.elements import STRING

WHITESPACE = "\0 \t\n\v\f\r\u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
"""What ``$trim`` takes off when it is not told."""
CONTINUES, CONTINUED = 0xC0, 0x80


def _concat(values: Iterator[Value]) -> Value:
    found = []
    for value in values:
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != STRING:
            raise refused(16702, "$concat only supports strings")
        found.append(text_bytes(value))
    return string_bytes(b"".join(found))


def _inside(raw: bytes, at: int) -> bool:
    """Whether a position lies within a character."""
    return at < len(raw) and raw[at] & CONTINUES == CONTINUED


def _substr_bytes(value: Value, start: Value, length: Value) -> Value:
    raw = coerced(value)
    for each, code in ((start, 16034), (length, 16035)):
        if not is_number(each):
            raise refused(code, "$substrBytes: an index must be a numeric type")
    lower = coerced_long(start)
    if lower < 0:
        raise refused(50752, "$substrBytes: starting index must be non-negative")
    count = coerced_long(length)
    count = len(raw) if count < 0 else count
    if _inside(raw, lower):
        raise refused(28656, "$substrBytes: Invalid range, starts inside a character")
    if _inside(raw, lower + count):
        raise refused(28657, "$substrBytes: Invalid range, ends inside a character")
    return string_bytes(raw[lower : lower + count])


def _substr_points(value: Value, start: Value, length: Value) -> Value:
    raw = coerced(value)
    for each, number_code, whole_code in ((start, 34450, 34451), (length, 34452, 34453)):
        if not is_number(each):
            raise refused(number_code, "$substrCP: an index must be a numeric type")
        if not is_integral(each):
            raise refused(whole_code, "$substrCP: an index must be a 32-bit integer")
    lower, count = coerced_long(start), coerced_long(length)
    if count < 0:
        raise refused(34454, "$substrCP: length must be a nonnegative integer.")
    if lower < 0:
        raise refused(34455, "$substrCP: the starting index must be nonnegative integer.")
    return string(raw.decode("utf-8", "surrogateescape")[lower : lower + count])


def _lower(value: Value) -> Value:
    return string_bytes(coerced(value).lower())


def _upper(value: Value) -> Value:
    return string_bytes(coerced(value).upper())


def _case_compare(left: Value, right: Value) -> Value:
    a, b = coerced(left).upper(), coerced(right).upper()
    return int32((a > b) - (a < b))


def _length(code: int, measure: Callable[[Value], int]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        if value[0] != STRING:
            raise refused(code, "a string argument is required")
        return int32(measure(value))

    return apply


def _search(values: tuple[Value, ...], codes: tuple[int, int]) -> tuple[Value, ...] | None:
    """The string, what to look for and the bounds, checked; None when the string is null."""
    if values[0][0] in NULLISH:
        return None
    for value, code in zip(values, codes, strict=False):
        if value[0] != STRING:
            raise refused(code, "$indexOf requires a string")
    for value in values[2:]:
        if not is_integral(value):
            raise refused(40096, "$indexOf requires an integral index")
        if coerced_long(value) < 0:
            raise refused(40097, "$indexOf requires a nonnegative index")
    return values


def _index_bytes(*values: Value) -> Value:
    found = _search(values, (40091, 40092))
    if found is None:
        return NULL_VALUE
    raw, wanted = text_bytes(found[0]), text_bytes(found[1])
    start = coerced_long(found[2]) if len(found) > 2 else 0
    end = min(len(raw), coerced_long(found[3])) if len(found) > 3 else len(raw)
    if start > len(raw) or end < start:
        return int32(-1)
    return int32(raw.find(wanted, start, end))


def _index_points(*values: Value) -> Value:
    found = _search(values, (40093, 40094))
    if found is None:
        return NULL_VALUE
    whole, wanted = text(found[0]), text(found[1])
    start = coerced_long(found[2]) if len(found) > 2 else 0
    end = min(len(whole), coerced_long(found[3])) if len(found) > 3 else len(whole)
    if not whole and not wanted and start == 0:
        return int32(0)
    at = whole.find(wanted, start)
    return int32(at if 0 <= at < end else -1)


def _split(value: Value, separator: Value) -> Value:
    if value[0] in NULLISH or separator[0] in NULLISH:
        return NULL_VALUE
    if value[0] != STRING:
        raise refused(40085, "$split requires an expression that evaluates to a string")
    if separator[0] != STRING:
        raise refused(40086, "$split requires a string as a second argument")
    between = text_bytes(separator)
    if not between:
        raise refused(40087, "$split requires a non-empty separator")
    return array(map(string_bytes, text_bytes(value).split(between)))


def _trim(name: str, argument: Value, scope: Scope) -> Node:
    given = arguments(name, argument, ("input", "chars"), not_object=50696, unknown=50694)
    required(name, given, {"input": 50695})
    parts = named(given, scope)

    def run(frame: Frame) -> Value:
        value = parts["input"].run(frame)
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != STRING:
            raise refused(50699, f"{name} requires its input to be a string")
        chars = WHITESPACE
        if "chars" in parts:
            wanted = parts["chars"].run(frame)
            if wanted[0] in NULLISH:
                return NULL_VALUE
            if wanted[0] != STRING:
                raise refused(50700, f"{name} requires 'chars' to be a string")
            chars = text(wanted)
        whole = text(value)
        whole = whole.lstrip(chars) if chars and name != "$rtrim" else whole
        return string(whole.rstrip(chars) if chars and name != "$ltrim" else whole)

    return folded(run, list(parts.values()))


REPLACE_PARTS = ("input", "find", "replacement")


def _replace(name: str, argument: Value, scope: Scope) -> Node:
    given = arguments(name, argument, REPLACE_PARTS, not_object=51751, unknown=51750)
    required(name, given, {"input": 51749, "find": 51748, "replacement": 51747})
    nodes = [named(given, scope)[word] for word in REPLACE_PARTS]
    times = 1 if name == "$replaceOne" else -1

    def run(frame: Frame) -> Value:
        values = [node.run(frame) for node in nodes]
        for value, code in zip(values, (51746, 51745, 51744), strict=True):
            if value[0] != STRING and value[0] not in NULLISH:
                raise refused(code, f"{name} requires strings")
        if any(value[0] in NULLISH for value in values):
            return NULL_VALUE
        whole, find, replacement = map(text_bytes, values)
        return string_bytes(whole.replace(find, replacement, times))

    return folded(run, nodes)


STRINGS = {
    "$concat": Operator(lazy(_concat)),
    "$substr": Operator(eager(_substr_bytes, 3, 3)),
    "$substrBytes": Operator(eager(_substr_bytes, 3, 3)),
    "$substrCP": Operator(eager(_substr_points, 3, 3)),
    "$toLower": Operator(unary(_lower)),
    "$toUpper": Operator(unary(_upper)),
    "$strcasecmp": Operator(binary(_case_compare)),
    "$strLenBytes": Operator(unary(_length(34473, lambda value: len(text_bytes(value))))),
    "$strLenCP": Operator(unary(_length(34471, lambda value: len(text(value))))),
    "$indexOfBytes": Operator(eager(_index_bytes, 2, 4)),
    "$indexOfCP": Operator(eager(_index_points, 2, 4)),
    "$split": Operator(binary(_split)),
    "$trim": Operator(_trim),
    "$ltrim": Operator(_trim),
    "$rtrim": Operator(_trim),
    "$replaceOne": Operator(_replace, since=(4, 4, 0)),
    "$replaceAll": Operator(_replace, since=(4, 4, 0)),
}
