"""How operators read their operands: the forms that nearly all of them share.

``eager`` hands a function the values of all operands, ``lazy`` an iterator of them, so
that what stands behind the one that decided is not evaluated, and ``named`` an object's
fields. Each gives a reader for the table, with the server's complaints about counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tailrace.query.context import refused
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.parser import Reader, Scope, operands, parse
from tailrace.query.values import Value, fields
from tailrace.raw.elements import OBJECT

EXACT_COUNT = 16020
COUNT_WITHIN = 28667

Named = dict[str, Node]


def counted(name: str, nodes: Sequence[Node], fewest: int, most: int | None) -> None:
    """The error of too few or too many operands."""
    count = len(nodes)
    if fewest == most and count != most:
        raise refused(
            EXACT_COUNT,
            f"Expression {name} takes exactly {most} arguments. {count} were passed in.",
        )
    if count < fewest or (most is not None and count > most):
        raise refused(
            COUNT_WITHIN,
            f"Expression {name} takes at least {fewest} arguments, and at most {most}, "
            f"but {count} were passed in.",
        )


def eager(function: Callable[..., Value], fewest: int = 0, most: int | None = None) -> Reader:
    """An operator that wants all its operands, as the arguments of a function."""

    def read(name: str, argument: Value, scope: Scope) -> Node:
        nodes = operands(argument, scope)
        counted(name, nodes, fewest, most)
        if len(nodes) == 1:
            first = nodes[0].run
            return folded(lambda frame: function(first(frame)), nodes)
        if len(nodes) == 2:
            left, right = nodes[0].run, nodes[1].run
            return folded(lambda frame: function(left(frame), right(frame)), nodes)
        return folded(lambda frame: function(*[node.run(frame) for node in nodes]), nodes)

    return read


def lazy(
    function: Callable[[Iterator[Value]], Value], fewest: int = 0, most: int | None = None
) -> Reader:
    """An operator that takes its operands one by one."""

    def read(name: str, argument: Value, scope: Scope) -> Node:
        nodes = operands(argument, scope)
        counted(name, nodes, fewest, most)
        return folded(lambda frame: function(node.run(frame) for node in nodes), nodes)

    return read


def unary(function: Callable[[Value], Value]) -> Reader:
    """An operator of one operand."""
    return eager(function, 1, 1)


def binary(function: Callable[[Value, Value], Value]) -> Reader:
    """An operator of two operands."""
    return eager(function, 2, 2)


def arguments(
    name: str,
    argument: Value,
    allowed: Sequence[str],
    *,
    not_object: int,
    unknown: int,
) -> dict[str, Value]:
    """The fields of an operator whose argument is an object with named parts."""
    if argument[0] != OBJECT:
        raise refused(not_object, f"{name} only supports an object as its argument")
    found: dict[str, Value] = {}
    for key, value in fields(argument):
        word = key.decode(errors="replace")
        if word not in allowed:
            raise refused(unknown, f"Unrecognized argument to {name}: {word}")
        found[word] = value
    return found


def required(name: str, found: dict[str, Value], words: dict[str, int]) -> None:
    """The error of a part that must be given: each word has its own code."""
    for word, code in words.items():
        if word not in found:
            raise refused(code, f"Missing '{word}' parameter to {name}")


def named(found: dict[str, Value], scope: Scope) -> Named:
    """The parts of an operator, compiled."""
    return {word: parse(value, scope) for word, value in found.items()}


def run_or_none(node: Node | None, frame: Frame) -> Value | None:
    """The value of a part that may be left out."""
    return None if node is None else node.run(frame)
