"""Comparisons, truth and choice: ``$eq`` to ``$cmp``, ``$and``, ``$cond``, ``$switch``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tailrace.query.context import refused
from tailrace.query.expressions.node import Frame, Node, constant, folded
from tailrace.query.expressions.parser import Operator, Scope, operands, parse
from tailrace.query.expressions.reading import arguments, binary, counted, lazy, unary
from tailrace.query.ordering import compare
from tailrace.query.values import NULL_VALUE, NULLISH, Value, boolean, fields, int32, items, truthy
from tailrace.raw.elements import ARRAY, OBJECT

COND_PARTS = ("if", "then", "else")


def _compares(holds: Callable[[int], bool]) -> Callable[[Value, Value], Value]:
    return lambda left, right: boolean(holds(compare(left, right)))


def _all(values: Iterator[Value]) -> Value:
    return boolean(all(map(truthy, values)))


def _any(values: Iterator[Value]) -> Value:
    return boolean(any(map(truthy, values)))


def _if_null(name: str, argument: Value, scope: Scope) -> Node:
    nodes = operands(argument, scope)
    if len(nodes) < 2:
        raise refused(1257300, f"$ifNull needs at least two arguments, had: {len(nodes)}")
    if not scope.context.since(5, 0):
        counted(name, nodes, 2, 2)

    def run(frame: Frame) -> Value:
        value = NULL_VALUE
        for node in nodes:
            value = node.run(frame)
            if value[0] not in NULLISH:
                return value
        return value

    return folded(run, nodes)


def _cond(name: str, argument: Value, scope: Scope) -> Node:
    if argument[0] == OBJECT:
        found = arguments(name, argument, COND_PARTS, not_object=16020, unknown=17083)
        for word, code in zip(COND_PARTS, (17080, 17081, 17082), strict=True):
            if word not in found:
                raise refused(code, f"Missing '{word}' parameter to $cond")
        nodes = [parse(found[word], scope) for word in COND_PARTS]
    else:
        nodes = operands(argument, scope)
        counted(name, nodes, 3, 3)
    when, then, otherwise = nodes
    if when.constant is not None:
        return then if truthy(when.constant) else otherwise
    return Node(lambda frame: (then if truthy(when.run(frame)) else otherwise).run(frame))


def _switch(name: str, argument: Value, scope: Scope) -> Node:
    if argument[0] != OBJECT:
        raise refused(40060, "$switch requires an object as an argument")
    branches: list[tuple[Node, Node]] = []
    default: Node | None = None
    for word, value in fields(argument):
        if word == b"branches":
            if value[0] != ARRAY:
                raise refused(40061, "$switch expected an array for 'branches'")
            branches = [_branch(each, scope) for each in items(value)]
        elif word == b"default":
            default = parse(value, scope)
        else:
            raise refused(40067, f"$switch found an unknown argument: {word!r}")
    if not branches:
        raise refused(40068, "$switch requires at least one branch.")
    return _chosen(branches, default)


def _chosen(branches: list[tuple[Node, Node]], default: Node | None) -> Node:
    possible: list[tuple[Node, Node]] = []
    for when, then in branches:
        if when.constant is None:
            possible.append((when, then))
        elif truthy(when.constant):
            default = then
            break
    if not possible and default is not None:
        return default

    def run(frame: Frame) -> Value:
        for when, then in possible:
            if truthy(when.run(frame)):
                return then.run(frame)
        if default is None:
            raise refused(
                40066,
                "$switch could not find a matching branch for an input, and no default was "
                "specified.",
            )
        return default.run(frame)

    return Node(run)


def _branch(value: Value, scope: Scope) -> tuple[Node, Node]:
    if value[0] != OBJECT:
        raise refused(40062, "$switch expected each branch to be an object")
    found: dict[bytes, Node] = {}
    for word, each in fields(value):
        if word not in (b"case", b"then"):
            raise refused(40063, f"$switch found an unknown argument to a branch: {word!r}")
        found[word] = parse(each, scope)
    if b"case" not in found:
        raise refused(40064, "$switch requires each branch have a 'case' expression")
    if b"then" not in found:
        raise refused(40065, "$switch requires each branch have a 'then' expression.")
    return found[b"case"], found[b"then"]


def _literal(name: str, argument: Value, scope: Scope) -> Node:
    return constant(argument)


LOGIC = {
    "$eq": Operator(binary(_compares(lambda order: order == 0))),
    "$ne": Operator(binary(_compares(lambda order: order != 0))),
    "$gt": Operator(binary(_compares(lambda order: order > 0))),
    "$gte": Operator(binary(_compares(lambda order: order >= 0))),
    "$lt": Operator(binary(_compares(lambda order: order < 0))),
    "$lte": Operator(binary(_compares(lambda order: order <= 0))),
    "$cmp": Operator(binary(lambda left, right: int32(compare(left, right)))),
    "$and": Operator(lazy(_all)),
    "$or": Operator(lazy(_any)),
    "$not": Operator(unary(lambda value: boolean(not truthy(value)))),
    "$cond": Operator(_cond),
    "$ifNull": Operator(_if_null),
    "$switch": Operator(_switch),
    "$literal": Operator(_literal),
    "$const": Operator(_literal),
}
