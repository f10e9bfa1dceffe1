"""Sets: arrays whose order does not count. What they make is in the order of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailrace.query.context import refused
from tailrace.query.expressions.parser import Operator
from tailrace.query.expressions.reading import binary, lazy, unary
from tailrace.query.ordering import sort_key
from tailrace.query.values import (
    FALSE,
    NULL_VALUE,
    NULLISH,
    TRUE,
    Value,
    array,
    boolean,
    items,
    truthy,
)
from tailrace.raw.elements import ARRAY


def _difference(left: Value, right: Value) -> Value:
    if left[0] in NULLISH or right[0] in NULLISH:
        return NULL_VALUE
    for value, code in ((left, 17048), (right, 17049)):
        if value[0] != ARRAY:
            raise refused(code, "both operands of $setDifference must be arrays")
    seen = {sort_key(each) for each in items(right)}
    found = []
    for each in items(left):
        key = sort_key(each)
        if key not in seen:
            seen.add(key)
            found.append(each)
    return array(found)


def _equals(values: Iterator[Value]) -> Value:
    first = None
    for value in values:
        if value[0] != ARRAY:
            raise refused(17044, "All operands of $setEquals must be arrays.")
        keys = {sort_key(each) for each in items(value)}
        first = keys if first is None else first
        if keys != first:
            return FALSE
    return TRUE


def _ordered(found: Iterable[Value]) -> Value:
    """Each value once, the first of equal ones, in order."""
    by_key: dict[object, Value] = {}
    for each in found:
        by_key.setdefault(sort_key(each), each)
    return array(each for _, each in sorted(by_key.items(), key=lambda pair: pair[0]))  # type: ignore[arg-type,return-value]


def _union(values: Iterator[Value]) -> Value:
    found: list[Value] = []
    for value in values:
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(17043, "All operands of $setUnion must be arrays.")
        found += items(value)
    return _ordered(found)


def _intersection(values: Iterator[Value]) -> Value:
    common: dict[object, Value] | None = None
    for value in values:
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(17047, "All operands of $setIntersection must be arrays.")
        found: dict[object, Value] = {}
        for each in items(value):
            found.setdefault(sort_key(each), each)
        if common is None:
            common = found
            continue
        # Of equal values the smaller set's are kept.
        small, large = (common, found) if len(common) <= len(found) else (found, common)
        common = {key: each for key, each in small.items() if key in large}
    return _ordered((common or {}).values())


def _subset(left: Value, right: Value) -> Value:
    for value, code in ((left, 17046), (right, 17042)):
        if value[0] != ARRAY:
            raise refused(code, "both operands of $setIsSubset must be arrays.")
    among = {sort_key(each) for each in items(right)}
    return boolean(all(sort_key(each) in among for each in items(left)))


def _all(value: Value) -> Value:
    if value[0] != ARRAY:
        raise refused(17040, "$allElementsTrue's argument must be an array")
    return boolean(all(map(truthy, items(value))))


def _any(value: Value) -> Value:
    if value[0] != ARRAY:
        raise refused(17041, "$anyElementTrue's argument must be an array")
    return boolean(any(map(truthy, items(value))))


SETS = {
    "$setDifference": Operator(binary(_difference)),
    "$setEquals": Operator(lazy(_equals, 2)),
    "$setUnion": Operator(lazy(_union)),
    "$setIntersection": Operator(lazy(_intersection)),
    "$setIsSubset": Operator(binary(_subset)),
    "$allElementsTrue": Operator(unary(_all)),
    "$anyElementTrue": Operator(unary(_any)),
}
