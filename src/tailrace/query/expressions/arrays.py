"""Arrays: elements, parts, searching, and what is done to each element."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.query.context import refused
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.numbers import coerced_long, is_integral, is_number
from tailrace.query.expressions.parser import Operator, Scope, check_variable, parse
from tailrace.query.expressions.reading import arguments, binary, eager, required, unary
from tailrace.query.ordering import equal
from tailrace.query.values import (
    FALSE,
    MISSING,
    NULL_VALUE,
    NULLISH,
    TRUE,
    Value,
    array,
    boolean,
    document,
    fields,
    int32,
    items,
    string_bytes,
    text_bytes,
    truthy,
)
from tailrace.raw.elements import ARRAY, OBJECT, STRING

MAX_RANGE_BYTES = 100 << 20
"""What a ``$range`` may take, as the server bounds it."""
BYTES_OF_NUMBER = 16


def _element_at(value: Value, place: Value) -> Value:
    if value[0] in NULLISH or place[0] in NULLISH:
        return NULL_VALUE
    if value[0] != ARRAY:
        raise refused(28689, "$arrayElemAt's first argument must be an array")
    if not is_number(place):
        raise refused(28690, "$arrayElemAt's second argument must be a numeric value")
    if not is_integral(place):
        raise refused(28691, "$arrayElemAt's second argument must be a 32-bit integer")
    return _at(items(value), coerced_long(place))


def _at(found: list[Value], index: int) -> Value:
    return found[index] if -len(found) <= index < len(found) else MISSING


def _end(name: str, index: int) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(28689, f"{name}'s argument must be an array")
        return _at(items(value), index)

    return apply


def _concat_arrays(*values: Value) -> Value:
    found: list[Value] = []
    for value in values:
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(28664, "$concatArrays only supports arrays")
        found += items(value)
    return array(found)


def _in(value: Value, among: Value) -> Value:
    if among[0] != ARRAY:
        raise refused(40081, "$in requires an array as a second argument")
    return boolean(any(equal(value, each) for each in items(among)))


def _index_of(*values: Value) -> Value:
    among = values[0]
    if among[0] in NULLISH:
        return NULL_VALUE
    if among[0] != ARRAY:
        raise refused(40090, "$indexOfArray requires an array as a first argument")
    for value in values[2:]:
        if not is_integral(value):
            raise refused(40096, "$indexOfArray requires an integral index")
        if coerced_long(value) < 0:
            raise refused(40097, "$indexOfArray requires a nonnegative index")
    found = items(among)
    start = coerced_long(values[2]) if len(values) > 2 else 0
    end = min(len(found), coerced_long(values[3])) if len(values) > 3 else len(found)
    for at in range(start, end):
        if equal(found[at], values[1]):
            return int32(at)
    return int32(-1)


def _range(*values: Value) -> Value:
    codes = ((34443, 34444), (34445, 34446), (34447, 34448))
    whole = []
    for value, (number_code, whole_code) in zip(values, codes, strict=False):
        if not is_number(value):
            raise refused(number_code, "$range requires a numeric value")
        if not is_integral(value):
            raise refused(whole_code, "$range requires a value that is a 32-bit integer")
        whole.append(coerced_long(value))
    start, end, step = (*whole, 1)[:3]
    if step == 0:
        raise refused(34449, "$range requires a non-zero step value")
    steps = range(start, end, step)
    if len(steps) * BYTES_OF_NUMBER > MAX_RANGE_BYTES:
        raise refused(146, "$range would use too much memory")
    return array(map(int32, steps))


def _reverse(value: Value) -> Value:
    if value[0] in NULLISH:
        return NULL_VALUE
    if value[0] != ARRAY:
        raise refused(34435, "The argument to $reverseArray must be an array")
    return array(items(value)[::-1])


def _size(value: Value) -> Value:
    if value[0] != ARRAY:
        raise refused(17124, "The argument to $size must be an array")
    return int32(len(items(value)))


def _slice(*values: Value) -> Value:
    whole = values[0]
    if whole[0] in NULLISH or values[1][0] in NULLISH:
        return NULL_VALUE
    if whole[0] != ARRAY:
        raise refused(28724, "First argument to $slice must be an array")
    _slice_number(values[1], 28725, 28726)
    found, first = items(whole), coerced_long(values[1])
    if len(values) == 2:
        return array(found[:first] if first >= 0 else found[max(0, len(found) + first) :])
    if values[2][0] in NULLISH:
        return NULL_VALUE
    _slice_number(values[2], 28727, 28728)
    count = coerced_long(values[2])
    if count <= 0:
        raise refused(28729, "Third argument to $slice must be positive")
    start = max(0, len(found) + first) if first < 0 else first
    return array(found[start : start + count])


def _slice_number(value: Value, number_code: int, whole_code: int) -> None:
    if not is_number(value):
        raise refused(number_code, "an argument to $slice must be numeric")
    if not is_integral(value):
        raise refused(whole_code, "an argument to $slice must be a 32-bit integer")


def _zip(name: str, argument: Value, scope: Scope) -> Node:
    allowed = ("inputs", "useLongestLength", "defaults")
    given = arguments(name, argument, allowed, not_object=34460, unknown=34464)
    longest = "useLongestLength" in given and _flag(given["useLongestLength"])
    if "inputs" in given and given["inputs"][0] != ARRAY:
        raise refused(34461, "inputs must be an array of expressions")
    if "defaults" in given and given["defaults"][0] != ARRAY:
        raise refused(34462, "defaults must be an array of expressions")
    inputs = [parse(each, scope) for each in items(given["inputs"])] if "inputs" in given else []
    defaults = (
        [parse(each, scope) for each in items(given["defaults"])] if "defaults" in given else []
    )
    if not inputs:
        raise refused(34465, "$zip requires at least one input array")
    if defaults and not longest:
        raise refused(34466, "cannot specify defaults unless useLongestLength is true")
    if defaults and len(defaults) != len(inputs):
        raise refused(34467, "defaults and inputs must have the same length")

    def run(frame: Frame) -> Value:
        columns = []
        for node in inputs:
            value = node.run(frame)
            if value[0] in NULLISH:
                return NULL_VALUE
            if value[0] != ARRAY:
                raise refused(34468, "$zip found a non-array expression in input")
            columns.append(items(value))
        fill = [node.run(frame) for node in defaults] or [NULL_VALUE] * len(columns)
        count = (max if longest else min)(map(len, columns))
        return array(
            array(
                column[at] if at < len(column) else fill[number]
                for number, column in enumerate(columns)
            )
            for at in range(count)
        )

    return folded(run, [*inputs, *defaults])


def _or_null(value: Value) -> Value:
    return value if value[0] else NULL_VALUE


def _flag(value: Value) -> bool:
    if value not in (TRUE, FALSE):
        raise refused(34463, "useLongestLength must be a bool")
    return value == TRUE


def _map(name: str, argument: Value, scope: Scope) -> Node:
    given = arguments(name, argument, ("input", "as", "in"), not_object=16878, unknown=16879)
    required(name, given, {"input": 16880, "in": 16882})
    each = _variable(given)
    source = parse(given["input"], scope)
    made = parse(given["in"], scope.inside(each))

    def run(frame: Frame) -> Value:
        value = source.run(frame)
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(16883, "input to $map must be an array")
        return array(_or_null(made.run(frame.inside({each: item}))) for item in items(value))

    return folded(run, [source, made])


def _filter(name: str, argument: Value, scope: Scope) -> Node:
    allowed = ("input", "as", "cond", *(("limit",) if scope.context.since(5, 2) else ()))
    given = arguments(name, argument, allowed, not_object=28646, unknown=28647)
    required(name, given, {"input": 28648, "cond": 28650})
    each = _variable(given)
    source = parse(given["input"], scope)
    wanted = parse(given["cond"], scope.inside(each))
    limit = parse(given["limit"], scope) if "limit" in given else None

    def run(frame: Frame) -> Value:
        value = source.run(frame)
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(28651, "input to $filter must be an array")
        elements = items(value)
        most = _limit(limit.run(frame)) if limit is not None and elements else None
        found: list[Value] = []
        for item in elements:
            if most is not None and len(found) >= most:
                break
            if truthy(wanted.run(frame.inside({each: item}))):
                found.append(item)
        return array(found)

    return folded(run, [source, wanted, *([limit] if limit else [])])


def _limit(value: Value) -> int | None:
    if value[0] in NULLISH:
        return None
    if not is_integral(value):
        raise refused(327391, "$filter: limit must be represented as a 32-bit integral value")
    if coerced_long(value) <= 0:
        raise refused(327392, "$filter: limit must be greater than 0")
    return coerced_long(value)


def _variable(given: dict[str, Value]) -> bytes:
    """The name under which ``in`` and ``cond`` know an element."""
    if "as" not in given:
        return b"this"
    if given["as"][0] != STRING:
        raise refused(15999, "the name of a variable must be a string")
    name = text_bytes(given["as"])
    check_variable(name, user=True)
    return name


def _reduce(name: str, argument: Value, scope: Scope) -> Node:
    allowed = ("input", "initialValue", "in")
    given = arguments(name, argument, allowed, not_object=40075, unknown=40076)
    required(name, given, {"input": 40077, "initialValue": 40078, "in": 40079})
    source, first = parse(given["input"], scope), parse(given["initialValue"], scope)
    step = parse(given["in"], scope.inside(b"this", b"value"))

    def run(frame: Frame) -> Value:
        value = source.run(frame)
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != ARRAY:
            raise refused(40080, "$reduce requires that 'input' be an array")
        made = first.run(frame)
        for item in items(value):
            made = step.run(frame.inside({b"this": item, b"value": made}))
        return made

    return folded(run, [source, first, step])


def _array_to_object(value: Value) -> Value:
    if value[0] in NULLISH:
        return NULL_VALUE
    if value[0] != ARRAY:
        raise refused(40386, "$arrayToObject requires an array input")
    made: dict[bytes, Value] = {}
    for place, each in enumerate(items(value)):
        form = each[0]
        if place == 0:
            first = form
        if form not in (ARRAY, OBJECT):
            raise refused(40398, "Unrecognised input type format for $arrayToObject")
        if form != first:
            raise refused(40391 if first == OBJECT else 40396, "$arrayToObject requires one form")
        name, inner = _pair(items(each)) if form == ARRAY else _keyed(each)
        made[name] = inner
    return document(made.items())


def _pair(found: list[Value]) -> tuple[bytes, Value]:
    if len(found) != 2:
        raise refused(40397, "$arrayToObject requires an array of size 2 arrays")
    if found[0][0] != STRING:
        raise refused(40395, "$arrayToObject requires an array of key-value pairs")
    return _key(found[0], 4940400), found[1]


def _keyed(value: Value) -> tuple[bytes, Value]:
    found = dict(fields(value))
    if len(found) != 2:
        raise refused(40392, "$arrayToObject requires an object keys of 'k' and 'v'")
    if b"k" not in found or b"v" not in found:
        raise refused(40393, "$arrayToObject requires an object with keys 'k' and 'v'")
    if found[b"k"][0] != STRING:
        raise refused(40394, "$arrayToObject requires keys of type string")
    return _key(found[b"k"], 4940401), found[b"v"]


def _key(value: Value, code: int) -> bytes:
    name = text_bytes(value)
    if b"\0" in name:
        raise refused(code, "Key field cannot contain an embedded null byte")
    return name


def _object_to_array(value: Value) -> Value:
    if value[0] in NULLISH:
        return NULL_VALUE
    if value[0] != OBJECT:
        raise refused(40390, "$objectToArray requires a document input")
    return array(
        document(((b"k", string_bytes(name)), (b"v", each))) for name, each in fields(value)
    )


ARRAYS = {
    "$arrayElemAt": Operator(binary(_element_at)),
    "$first": Operator(unary(_end("$first", 0)), since=(4, 4, 0)),
    "$last": Operator(unary(_end("$last", -1)), since=(4, 4, 0)),
    "$concatArrays": Operator(eager(_concat_arrays)),
    "$in": Operator(binary(_in)),
    "$indexOfArray": Operator(eager(_index_of, 2, 4)),
    "$isArray": Operator(unary(lambda value: boolean(value[0] == ARRAY))),
    "$range": Operator(eager(_range, 2, 3)),
    "$reverseArray": Operator(unary(_reverse)),
    "$size": Operator(unary(_size)),
    "$slice": Operator(eager(_slice, 2, 3)),
    "$zip": Operator(_zip),
    "$map": Operator(_map),
    "$filter": Operator(_filter),
    "$reduce": Operator(_reduce),
    "$arrayToObject": Operator(unary(_array_to_object)),
    "$objectToArray": Operator(unary(_object_to_array)),
}
