"""What ``$v: 1`` update entries hold, and what they make of a document.

Servers before 5.0 logged updates as ``$set`` and ``$unset`` of dotted paths; later ones
still take them. They are applied as the server does: known fields stay where they are,
new ones come behind them in the order of their names (numbers by value), items are
written over or unset to null, and a path that leads through a scalar changes nothing.

Format: facts/server-semantics, section 3.2. Knows no entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cmp_to_key

from tailrace.errors import BadBson
from tailrace.raw import Span, all_spans, document, element
from tailrace.raw.elements import ARRAY, NULL, OBJECT

MODIFIERS = (b"$set", b"$unset")
MOST_PADDING = 1_500_000
"""Items that the server adds to an array at most, to reach an index."""

Value = tuple[int, bytes]
"""Type byte and bytes of a new value."""


class Node(dict[bytes, "Node | Value | None"]):
    """What changes below a path: new values, None for what is unset, deeper nodes."""


def apply_modifiers(before: bytes, body: bytes, fields: dict[bytes, Span]) -> bytes:
    """The document that ``before`` becomes by the modifiers of a ``$v: 1`` update."""
    changes = Node()
    for modifier in MODIFIERS:
        kind, at, _ = fields.get(modifier, (OBJECT, 0, 0))
        if kind != OBJECT:
            raise BadBson(f"{modifier.decode()} is not a document", offset=at)
        for path, (kind, start, end) in all_spans(body, at) if at else ():
            _plant(changes, path, (kind, body[start:end]) if modifier == b"$set" else None)
    return _change_document(before, 0, changes)


def _plant(changes: Node, path: bytes, value: Value | None) -> None:
    *way, last = path.split(b".")
    for step in way:
        below = changes.setdefault(step, Node())
        if not isinstance(below, Node):
            raise BadBson(f"modifiers that collide at {step!r}", offset=0)
        changes = below
    changes[last] = value


def _change_document(before: bytes, start: int, changes: Node) -> bytes:
    kept: list[bytes] = []
    left = dict(changes)
    for name, span in all_spans(before, start):
        if name not in left:
            kept.append(element(name, span[0], before[span[1] : span[2]]))
            continue
        change = left.pop(name)
        if change is not None:
            kept.append(element(name, *_changed(before, span, change)))
    kept.extend(element(name, *value) for name, value in _new_values(left))
    return document(*kept)


def _changed(before: bytes, old: Span, change: Node | Value) -> Value:
    kind, start, end = old
    if not isinstance(change, Node):
        return change
    if kind == OBJECT:
        return OBJECT, _change_document(before, start, change)
    if kind == ARRAY:
        return ARRAY, _change_array(before, start, change)
    return kind, before[start:end]


def _change_array(before: bytes, start: int, changes: Node) -> bytes:
    old = [span for _, span in all_spans(before, start)]
    items: list[Value] = [(kind, before[value:stop]) for kind, value, stop in old]
    for name in sorted(filter(bytes.isdigit, changes), key=int):
        index, change = int(name), changes[name]
        if index < len(old):
            items[index] = (NULL, b"") if change is None else _changed(before, old[index], change)
            continue
        for _, value in _new_values({name: change}):
            if index - len(items) > MOST_PADDING:
                raise BadBson("an index too far behind its array's end", offset=start)
            items.extend([(NULL, b"")] * (index - len(items)))
            items.append(value)
    return document(*(element(b"%d" % at, *item) for at, item in enumerate(items)))


def _new_values(changes: dict[bytes, Node | Value | None]) -> Iterator[tuple[bytes, Value]]:
    """What comes to be where nothing was, in the server's order."""
    for name in sorted(changes, key=_in_order):
        change = changes[name]
        if isinstance(change, Node):
            inside = [element(below, *value) for below, value in _new_values(change)]
            if inside:
                yield name, (OBJECT, document(*inside))
        elif change is not None:
            yield name, change


def _compared(left: bytes, right: bytes) -> int:
    """Names in byte order, but numbers by value among themselves."""
    if _is_number(left) and _is_number(right):
        return int(left) - int(right)
    return (left > right) - (left < right)


def _is_number(name: bytes) -> bool:
    return name.isdigit() and (name == b"0" or name[:1] != b"0")


_in_order = cmp_to_key(_compared)
