"""Inclusion, exclusion and added fields as one tree that reshapes a document.

A node knows which of its fields it projects, which it goes down into, and which it
computes, in the order in which the specification first named them. What is not named
is copied as bytes. The walk is the server's: first over the input's fields in their
order, then over computed fields in the specification's; arrays are gone through
element by element.
"""

from __future__ import annotations

from tailrace.query.expressions.node import Frame, Node
from tailrace.query.values import MISSING, Value, array, document, items, string
from tailrace.raw import all_spans
from tailrace.raw.elements import ARRAY, OBJECT

Parts = dict[bytes, Value]
EVENT_FIELDS = (
    b"_id",
    b"operationType",
    b"clusterTime",
    b"collectionUUID",
    b"wallTime",
    b"fullDocument",
    b"ns",
    b"documentKey",
    b"updateDescription",
)
"""The order in which a server makes an event; a field that it has not keeps its place."""
INVALIDATE = string("invalidate")


class Projection:
    """One level of a projection; ``keeps`` says what becomes of fields that it does not name."""

    __slots__ = ("children", "computed", "keeps", "named", "nested", "order", "places")

    def __init__(self, *, keeps: bool, nested: bool = True, places: bool = False) -> None:
        self.keeps = keeps
        self.places = places
        """Whether a change event's own fields come back to the places that they have in it."""
        self.nested = nested
        """Whether arrays inside arrays are gone through as well."""
        self.named: set[bytes] = set()
        self.children: dict[bytes, Projection] = {}
        self.computed: dict[bytes, Node] = {}
        self.order: list[bytes] = []

    def child(self, name: bytes) -> Projection:
        """The level below a field, made when it is first named."""
        if name not in self.children:
            self.children[name] = Projection(keeps=self.keeps, nested=self.nested)
            self.order.append(name)
        return self.children[name]

    def name(self, name: bytes) -> None:
        """Have a field included, or excluded."""
        self.named.add(name)

    def compute(self, name: bytes, node: Node) -> None:
        """Have a field computed."""
        self.computed[name] = node
        self.order.append(name)

    @property
    def computes(self) -> bool:
        """Whether anything in this level or below is computed."""
        return bool(self.computed) or any(each.computes for each in self.children.values())

    def apply(self, frame: Frame) -> bytes:
        """The document of a frame, reshaped."""
        root = frame.root
        if self.keeps and not self.computes and not self._touches(root):
            return root
        parts = self._projected(root)
        if self.computes:
            self._compute(parts, frame)
        return _written(parts)

    def _touches(self, raw: bytes) -> bool:
        return any(name in self.named or name in self.children for name, _ in all_spans(raw))

    def _projected(self, raw: bytes) -> Parts:
        parts: Parts = {}
        keeps, named, children = self.keeps, self.named, self.children
        for name, (kind, start, end) in all_spans(raw):
            value = (kind, raw[start:end])
            if name in named:
                if not keeps:
                    parts[name] = value
            elif name in children:
                below = children[name].project(value)
                if below[0]:
                    parts[name] = below
            elif keeps:
                parts[name] = value
        return parts

    def project(self, value: Value) -> Value:
        """A value below this level, with what is included or excluded in it."""
        kind, raw = value
        if kind == OBJECT:
            return OBJECT, _written(self._projected(raw))
        if kind == ARRAY:
            return array(self._item(each) for each in items(value))
        return value if self.keeps else MISSING

    def _item(self, each: Value) -> Value:
        if each[0] == ARRAY and not self.nested:
            return each if self.keeps else MISSING
        return self.project(each)

    def _compute(self, parts: Parts, frame: Frame) -> None:
        for name in self.order:
            node = self.computed.get(name)
            if node is None:
                value = self.children[name].add(parts.get(name, MISSING), frame)
            else:
                value = node.run(frame)
            if self.places and value[0] and name not in parts and _has_place(parts, name):
                _put_in_place(parts, name, value)
            else:
                # A field keeps its place even while it is missing.
                parts[name] = value

    def add(self, value: Value, frame: Frame) -> Value:
        """A value below this level, with the computed fields set in it."""
        kind, raw = value
        if kind == OBJECT:
            parts = _parts(raw)
            self._compute(parts, frame)
            return OBJECT, _written(parts)
        if kind == ARRAY:
            return array(self.add(each, frame) for each in items(value))
        if self.computes:
            made: Parts = {}
            self._compute(made, frame)
            return OBJECT, _written(made)
        return value if self.keeps else MISSING


def _has_place(parts: Parts, name: bytes) -> bool:
    """Whether a field has a place in an event like this one; an invalidate keeps none."""
    return name in EVENT_FIELDS and parts.get(b"operationType") != INVALIDATE


def _put_in_place(parts: Parts, name: bytes, value: Value) -> None:
    """Add a field behind those that stand before it in every event."""
    before = EVENT_FIELDS[: EVENT_FIELDS.index(name)]
    found = list(parts.items())
    at = 1 + max((place for place, (each, _) in enumerate(found) if each in before), default=-1)
    parts.clear()
    parts.update([*found[:at], (name, value), *found[at:]])


def _parts(raw: bytes) -> Parts:
    return {name: (kind, raw[start:end]) for name, (kind, start, end) in all_spans(raw)}


def _written(parts: Parts) -> bytes:
    return document(parts.items())[1]
