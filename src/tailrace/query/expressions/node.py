"""A compiled expression: what it needs to run, and its value where that is known already.

A ``Node`` runs in a ``Frame``: the document before it and the variables in scope. As
the server does, what has only constants below it is evaluated when it is compiled, so
that its errors come when the stream is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tailrace.query.values import MISSING, Value
from tailrace.raw.elements import OBJECT

EMPTY_DOCUMENT = b"\x05\x00\x00\x00\x00"


class Frame:
    """One document, and the variables that are in scope."""

    __slots__ = ("root", "variables")

    def __init__(self, root: bytes, variables: Mapping[bytes, Value]) -> None:
        self.root = root
        self.variables = variables

    def inside(self, names: Mapping[bytes, Value]) -> Frame:
        """The same document, with more variables."""
        return Frame(self.root, {**self.variables, **names})


Run = Callable[[Frame], Value]


class Node:
    """An expression that can be run; ``constant`` is its value when it is always the same."""

    __slots__ = ("constant", "run")

    def __init__(self, run: Run, constant: Value | None = None) -> None:
        self.run = run
        self.constant = constant


NOWHERE = Frame(EMPTY_DOCUMENT, {})


def constant(value: Value) -> Node:
    """An expression that is always this value."""
    return Node(lambda frame: value, value)


def folded(run: Run, parts: Sequence[Node]) -> Node:
    """An expression over others; a constant when all of them are."""
    if all(part.constant is not None for part in parts):
        return constant(run(NOWHERE))
    return Node(run)


ABSENT_NODE = constant(MISSING)
ROOT_NODE = Node(lambda frame: (OBJECT, frame.root))
