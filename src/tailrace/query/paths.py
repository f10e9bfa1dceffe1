"""Where a dotted path leads: one walk for expressions, another for the match language.

An expression's path maps over arrays of documents and yields one value. A match
path yields every element that it may mean: fields of sub-documents, of documents
inside arrays, and, where a component is a number, array positions; a trailing array
yields its elements and then itself.

Both read spans in place. A repeated field name counts once, by its first place.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.query.values import MISSING, Value, array
from tailrace.raw import Span, iter_spans
from tailrace.raw.elements import ARRAY, OBJECT

Test = Callable[[bytes, Span], bool]
"""Whether an element (its buffer and span) is what a predicate wants."""

ABSENT: Span = (0, 0, 0)


def find(buffer: bytes, start: int, name: bytes) -> Span:
    """The span of a field of the document at ``start``; ``ABSENT`` without one."""
    for field, span in iter_spans(buffer, start):
        if field == name:
            return span
    return ABSENT


def field_value(raw: bytes, path: tuple[bytes, ...]) -> Value:
    """What an expression's ``$a.b.c`` is in a document."""
    start, last = 0, len(path) - 1
    for depth, name in enumerate(path):
        kind, begin, end = find(raw, start, name)
        if depth == last:
            return (kind, raw[begin:end]) if kind else MISSING
        if kind == OBJECT:
            start = begin
        elif kind == ARRAY:
            rest = path[depth + 1 :]
            return array(
                field_value(raw[at:stop], rest)
                for _, (each, at, stop) in iter_spans(raw, begin)
                if each == OBJECT
            )
        else:
            return MISSING
    return MISSING


def any_element(
    buffer: bytes, start: int, path: tuple[bytes, ...], test: Test, *, into_leaf: bool
) -> bool:
    """Whether any element that a match path means passes the test.

    ``into_leaf`` says whether an array at the end of the path yields its elements
    before itself. A path that leads nowhere yields ``ABSENT`` once.
    """
    last = len(path) - 1
    for depth, name in enumerate(path):
        span = find(buffer, start, name)
        kind = span[0]
        if kind == ARRAY:
            if depth < last:
                return _any_in_array(buffer, span, path[depth + 1 :], test, into_leaf=into_leaf)
            return (into_leaf and _any_item(buffer, span, test)) or test(buffer, span)
        if depth == last:
            return test(buffer, span)
        if kind != OBJECT:
            return test(buffer, ABSENT)
        start = span[1]
    return test(buffer, (OBJECT, start, len(buffer)))


def _any_item(buffer: bytes, span: Span, test: Test) -> bool:
    return any(test(buffer, each) for _, each in iter_spans(buffer, span[1]))


def _any_in_array(
    buffer: bytes, span: Span, rest: tuple[bytes, ...], test: Test, *, into_leaf: bool
) -> bool:
    position = rest[0]
    for index, each in iter_spans(buffer, span[1]):
        kind = each[0]
        if kind == OBJECT and any_element(buffer, each[1], rest, test, into_leaf=into_leaf):
            return True
        if index != position:
            continue
        if len(rest) == 1:
            found = test(buffer, each)
        elif kind == OBJECT:
            found = any_element(buffer, each[1], rest[1:], test, into_leaf=into_leaf)
        else:
            found = kind == ARRAY and _any_in_array(
                buffer, each, rest[1:], test, into_leaf=into_leaf
            )
        if found:
            return True
    return False
