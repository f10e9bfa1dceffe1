"""Objects, variables and sizes: fields by any name, merging, ``$let``, what bytes there are."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.query.context import refused
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.parser import Operator, Scope, check_variable, parse
from tailrace.query.expressions.reading import arguments, lazy, required, unary
from tailrace.query.values import (
    MISSING,
    NULL_VALUE,
    NULLISH,
    Value,
    document,
    fields,
    int32,
    int64,
    text_bytes,
)
from tailrace.raw.elements import BINARY, OBJECT, STRING, TIMESTAMP

BINARY_HEAD = 5
"""A binary value's length and subtype."""


def _merge(values: Iterator[Value]) -> Value:
    made: dict[bytes, Value] = {}
    for value in values:
        if value[0] in NULLISH:
            continue
        if value[0] != OBJECT:
            raise refused(40400, "$mergeObjects requires object inputs")
        made.update(fields(value))
    return document(made.items())


def _let(name: str, argument: Value, scope: Scope) -> Node:
    given = arguments(name, argument, ("vars", "in"), not_object=16874, unknown=16875)
    required(name, given, {"vars": 16876, "in": 16877})
    if given["vars"][0] != OBJECT:
        raise refused(10065, "invalid parameter: expected an object (vars)")
    variables: dict[bytes, Node] = {}
    for each, value in fields(given["vars"]):
        check_variable(each, user=True)
        variables[each] = parse(value, scope)
    inside = parse(given["in"], scope.inside(*variables))

    def run(frame: Frame) -> Value:
        return inside.run(frame.inside({each: node.run(frame) for each, node in variables.items()}))

    return folded(run, [inside, *variables.values()])


def _get_field(name: str, argument: Value, scope: Scope) -> Node:
    if _has_operands(argument, (b"field", b"input")):
        given = arguments(name, argument, ("field", "input"), not_object=3041701, unknown=3041701)
        required(name, given, {"field": 3041702, "input": 3041703})
        field, source = given["field"], parse(given["input"], scope)
    else:
        field, source = argument, Node(lambda frame: (OBJECT, frame.root))
    wanted = parse(field, scope)
    if wanted.constant is None:
        raise refused(3041704, "$getField requires 'field' to evaluate to a constant")
    if wanted.constant[0] != STRING:
        raise refused(3041704, "$getField requires 'field' to evaluate to type String")
    key = text_bytes(wanted.constant)

    def run(frame: Frame) -> Value:
        value = source.run(frame)
        if value[0] in NULLISH:
            return NULL_VALUE if value[0] else MISSING
        if value[0] != OBJECT:
            return MISSING
        return dict(fields(value)).get(key, MISSING)

    return folded(run, [source])


def _has_operands(argument: Value, words: tuple[bytes, ...]) -> bool:
    """Whether an argument names an operator's parts rather than being one itself."""
    if argument[0] != OBJECT:
        return False
    names = [name for name, _ in fields(argument)]
    return not (names and names[0].startswith(b"$"))


def _set_field(name: str, argument: Value, scope: Scope) -> Node:
    sets = name == "$setField"
    words = ("field", "input", "value") if sets else ("field", "input")
    given = arguments(name, argument, words, not_object=4161100, unknown=4161101)
    required(name, given, {"field": 4161102, "input": 4161109})
    if sets:
        required(name, given, {"value": 4161103})
    wanted = parse(given["field"], scope)
    if wanted.constant is None:
        raise refused(4161106, f"{name} requires 'field' to evaluate to a constant")
    if wanted.constant[0] != STRING:
        raise refused(4161107, f"{name} requires 'field' to evaluate to type String")
    key = text_bytes(wanted.constant)
    source = parse(given["input"], scope)
    new = parse(given["value"], scope) if sets else None

    def run(frame: Frame) -> Value:
        value = source.run(frame)
        if value[0] in NULLISH:
            return NULL_VALUE
        if value[0] != OBJECT:
            raise refused(4161105, f"{name} requires 'input' to evaluate to type Object")
        made = dict(fields(value))
        made[key] = MISSING if new is None else new.run(frame)
        return document(made.items())

    return folded(run, [source, *([new] if new else [])])


def _bson_size(value: Value) -> Value:
    if value[0] in NULLISH:
        return NULL_VALUE
    if value[0] != OBJECT:
        raise refused(31393, "$bsonSize requires a document input")
    return int32(len(value[1]))


def _binary_size(value: Value) -> Value:
    if value[0] in NULLISH:
        return NULL_VALUE
    if value[0] == STRING:
        return int32(len(text_bytes(value)))
    if value[0] != BINARY:
        raise refused(51276, "$binarySize requires a string or BinData argument")
    return int32(len(value[1]) - BINARY_HEAD)


def _seconds(value: Value) -> Value:
    return _of_timestamp(value, 5687301, 32)


def _increment(value: Value) -> Value:
    return _of_timestamp(value, 5687302, 0)


def _of_timestamp(value: Value, code: int, shift: int) -> Value:
    if value[0] in NULLISH:
        return NULL_VALUE
    if value[0] != TIMESTAMP:
        raise refused(code, "the argument must be a timestamp")
    return int64(int.from_bytes(value[1], "little") >> shift & 0xFFFF_FFFF)


OBJECTS = {
    "$mergeObjects": Operator(lazy(_merge)),
    "$let": Operator(_let),
    "$getField": Operator(_get_field, since=(5, 0, 0)),
    "$setField": Operator(_set_field, since=(5, 0, 0)),
    "$unsetField": Operator(_set_field, since=(5, 0, 0)),
    "$bsonSize": Operator(unary(_bson_size), since=(4, 4, 0)),
    "$binarySize": Operator(unary(_binary_size), since=(4, 4, 0)),
    "$tsSecond": Operator(unary(_seconds), since=(5, 1, 0)),
    "$tsIncrement": Operator(unary(_increment), since=(5, 1, 0)),
}
