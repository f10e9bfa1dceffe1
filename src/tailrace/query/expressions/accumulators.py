"""Sums, means and extremes over operands, or over the elements of the only one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from tailrace.query.context import not_here, refused
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.numbers import (
    QUIET,
    as_double,
    coerced_long,
    is_number,
    whole_of,
)
from tailrace.query.expressions.parser import Operator, Reader, Scope, operands, parse
from tailrace.query.expressions.reading import arguments, required
from tailrace.query.expressions.totals import Total
from tailrace.query.ordering import compare, sort_key
from tailrace.query.values import (
    NULL_VALUE,
    NULLISH,
    NUMBERS,
    Value,
    array,
    decimal,
    double,
    items,
    number,
)
from tailrace.raw.elements import ARRAY, DECIMAL, OBJECT

Collected = Sequence[Value]


def _over(function: Callable[[Collected], Value]) -> Reader:
    def read(name: str, argument: Value, scope: Scope) -> Node:
        nodes = operands(argument, scope)

        def run(frame: Frame) -> Value:
            values = [node.run(frame) for node in nodes]
            if len(values) == 1 and values[0][0] == ARRAY:
                return function(items(values[0]))
            return function(values)

        return folded(run, nodes)

    return read


def _sum(values: Collected) -> Value:
    total = Total()
    for value in values:
        total.add(value)
    return total.value()


def _avg(values: Collected) -> Value:
    total = Total()
    for value in values:
        total.add(value)
    if not total.count:
        return NULL_VALUE
    if total.kind == DECIMAL:
        return decimal(QUIET.divide(total.exact, Decimal(total.count)))
    return double(total.real / total.count)


def _extreme(sign: int) -> Callable[[Collected], Value]:
    def apply(values: Collected) -> Value:
        best: Value | None = None
        for value in values:
            if value[0] in NULLISH:
                continue
            if best is None or compare(value, best) * sign > 0:
                best = value
        return NULL_VALUE if best is None else best

    return apply


def _deviation(*, sample: bool) -> Callable[[Collected], Value]:
    def apply(values: Collected) -> Value:
        count, mean, squares = 0, 0.0, 0.0
        for value in values:
            if value[0] not in NUMBERS:
                continue
            amount = as_double(number(value))
            count += 1
            delta = amount - mean
            mean += delta / count
            squares += delta * (amount - mean)
        within = count - 1 if sample else count
        if within < 1:
            return NULL_VALUE
        return double(math.sqrt(squares / within) if squares >= 0 else squares)

    return apply


def _first_n(name: str, argument: Value, scope: Scope) -> Node:
    given = arguments(name, argument, ("n", "input"), not_object=5787801, unknown=5787901)
    required(name, given, {"n": 5787906, "input": 5787907})
    count, source = parse(given["n"], scope), parse(given["input"], scope)

    def run(frame: Frame) -> Value:
        wanted = _count(count.run(frame))
        value = source.run(frame)
        if value[0] != ARRAY:
            raise refused(5788200, "Input must be an array")
        return array(PICKS[name](items(value), wanted))

    return folded(run, [count, source])


def _count(value: Value) -> int:
    if not is_number(value):
        raise refused(5787902, "Value for 'n' must be of integral type")
    coerced_long(value)
    whole = whole_of(value)
    if whole is None:
        raise refused(5787903, "Value for 'n' must be of integral type")
    if whole <= 0:
        raise refused(5787908, "'n' must be greater than 0")
    return whole


def _largest(found: list[Value], count: int) -> list[Value]:
    present = [each for each in found if each[0] not in NULLISH]
    return sorted(present, key=sort_key)[::-1][:count]


def _smallest(found: list[Value], count: int) -> list[Value]:
    present = [each for each in found if each[0] not in NULLISH]
    return sorted(present, key=sort_key)[:count]


PICKS: dict[str, Callable[[list[Value], int], list[Value]]] = {
    "$firstN": lambda found, count: found[:count],
    "$lastN": lambda found, count: found[-count:],
    "$maxN": _largest,
    "$minN": _smallest,
}


def _sort_array(name: str, argument: Value, scope: Scope) -> Node:
    given = arguments(name, argument, ("input", "sortBy"), not_object=2942500, unknown=2942501)
    required(name, given, {"input": 2942502, "sortBy": 2942503})
    source = parse(given["input"], scope)
    key, reverse = _order(given["sortBy"])

    def run(frame: Frame) -> Value:
        value = source.run(frame)
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(2942504, "The input argument to $sortArray must be an array")
        return array(sorted(items(value), key=key, reverse=reverse))

    return folded(run, [source])


def _order(value: Value) -> tuple[Callable[[Value], Any], bool]:
    """The key by which elements are sorted, and whether the other way round."""
    if value[0] == OBJECT:
        raise not_here("$sortArray", "it sorts by fields only on a server")
    if value[0] not in NUMBERS or number(value) not in (1, -1):
        raise refused(2942507, "sortBy must be 1, -1 or a document")
    return sort_key, number(value) == -1


ACCUMULATORS = {
    "$sum": Operator(_over(_sum)),
    "$avg": Operator(_over(_avg)),
    "$max": Operator(_over(_extreme(1))),
    "$min": Operator(_over(_extreme(-1))),
    "$stdDevPop": Operator(_over(_deviation(sample=False))),
    "$stdDevSamp": Operator(_over(_deviation(sample=True))),
    **{name: Operator(_first_n, since=(5, 2, 0)) for name in PICKS},
    "$sortArray": Operator(_sort_array, since=(5, 2, 0), note="by fields only on a server"),
}
