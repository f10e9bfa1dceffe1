"""Fields that must not reach the lake: dropped, or replaced by a hash of what they hold.

A rule names a path of field names; arrays on the way are walked through. What is dropped
from documents is dropped from diffs, so that a diff applied to what is stored gives what
the rules make of the new document. A hashed field keeps its shape: each scalar at or
below the path becomes the SHA-256 of its bytes and the salt, so that a diff inside of it
can still be applied. The ``_id`` cannot be hidden: rows are found by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tailrace.errors import OptionError
from tailrace.raw import document, element, iter_spans, spans, string_value
from tailrace.raw.elements import ARRAY, NULL, OBJECT, STRING

DROP, HASH = "drop", "hash"
Tree = dict[bytes, Any]
"""Field name to what to do with it: an action, or the tree below."""
Elements = Iterator[bytes]


@dataclass(frozen=True, slots=True)
class FieldRules:
    """What is hidden, of every document and every diff."""

    drop: tuple[str, ...] = ()
    hash: tuple[str, ...] = ()
    salt: str = field(default="", repr=False)
    tree: Tree = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tree: Tree = {}
        for action, paths in ((HASH, self.hash), (DROP, self.drop)):
            for path in paths:
                _plant(tree, path, action)
        object.__setattr__(self, "tree", tree)

    def __bool__(self) -> bool:
        return bool(self.tree)

    def document(self, raw: bytes) -> bytes:
        """A document as the lake may have it."""
        return _Hiding(self.salt).document(raw, 0, self.tree) if self.tree else raw

    def delta(self, raw: bytes) -> bytes:
        """An update entry's ``o`` as the lake may have it."""
        if not self.tree:
            return raw
        hiding = _Hiding(self.salt)
        return document(*hiding.delta(raw, self.tree))

    def description(self, raw: bytes) -> bytes:
        """An ``updateDescription`` as the lake may have it."""
        if not self.tree:
            return raw
        return document(*_Hiding(self.salt).description(raw, self.tree))


NOTHING_HIDDEN = FieldRules()


def _plant(tree: Tree, path: str, action: str) -> None:
    steps = path.encode().split(b".")
    if not all(steps) or steps[0] == b"_id":
        raise OptionError(f"{path!r} cannot be hidden: rows are found by _id", option=action)
    for step in steps[:-1]:
        below = tree.setdefault(step, {})
        if not isinstance(below, dict):
            return
        tree = below
    tree[steps[-1]] = action


class _Hiding:
    def __init__(self, salt: str) -> None:
        self._salt = salt.encode()

    def document(self, raw: bytes, start: int, tree: Tree) -> bytes:
        return document(*self._fields(raw, start, tree))

    def _fields(self, raw: bytes, start: int, tree: Tree) -> Elements:
        for name, (kind, value, end) in iter_spans(raw, start):
            rule = tree.get(name)
            if rule != DROP:
                yield element(name, *self.value(kind, raw[value:end], rule))

    def value(self, kind: int, raw: bytes, rule: Any) -> tuple[int, bytes]:
        """A value under a rule: an action, a tree, or None."""
        if rule is None:
            return kind, raw
        if kind == ARRAY:
            items = (
                element(name, *self.value(item, raw[value:end], rule))
                for name, (item, value, end) in iter_spans(raw)
            )
            return kind, document(*items)
        if rule == HASH:
            if kind == OBJECT:
                inside = (
                    element(name, *self.value(item, raw[value:end], HASH))
                    for name, (item, value, end) in iter_spans(raw)
                )
                return kind, document(*inside)
            return self._hashed(kind, raw)
        return (kind, self.document(raw, 0, rule)) if kind == OBJECT else (kind, raw)

    def _hashed(self, kind: int, raw: bytes) -> tuple[int, bytes]:
        if kind == NULL:
            return kind, raw
        digest = hashlib.sha256(self._salt + b"%c%b" % (kind, raw)).hexdigest()
        return STRING, string_value(digest.encode())

    def delta(self, raw: bytes, tree: Tree) -> Elements:
        for name, (kind, value, end) in iter_spans(raw):
            inside = raw[value:end]
            if name == b"diff" and kind == OBJECT:
                inside = document(*self._diff(inside, tree))
            elif name in (b"$set", b"$unset") and kind == OBJECT:
                inside = document(*self._paths(inside, tree))
            yield element(name, kind, inside)

    def _diff(self, raw: bytes, rule: Any) -> Elements:
        """A level of a ``$v: 2`` diff; ``rule`` is HASH below a hashed field."""
        if b"a" in spans(raw):
            yield from self._array_diff(raw, rule)
            return
        for section, (kind, value, end) in iter_spans(raw):
            inside = raw[value:end]
            below = self._part(section, inside, rule)
            if below is None:
                yield element(section, kind, inside)
            elif below:
                yield element(section, kind, document(*below))

    def _part(self, section: bytes, inside: bytes, rule: Any) -> list[bytes] | None:
        """What is left of a section; None when it has nothing to hide."""
        if section in (b"u", b"i"):
            return self._section(inside, rule)
        if section == b"d":
            return [each for name, each in _named(inside) if _below(rule, name) != DROP]
        deeper = _below(rule, section[1:])
        if deeper == DROP:
            return []
        return None if deeper is None else list(self._diff(inside, deeper))

    def _section(self, raw: bytes, rule: Any) -> list[bytes]:
        return [
            element(name, *self.value(kind, raw[value:end], _below(rule, name)))
            for name, (kind, value, end) in iter_spans(raw)
            if _below(rule, name) != DROP
        ]

    def _array_diff(self, raw: bytes, rule: Any) -> Elements:
        for name, (kind, value, end) in iter_spans(raw):
            inside = raw[value:end]
            if name[:1] == b"u":
                yield element(name, *self.value(kind, inside, rule))
            elif name[:1] == b"s" and (below := list(self._diff(inside, rule))):
                yield element(name, kind, document(*below))
            elif name[:1] != b"s":
                yield element(name, kind, inside)

    def description(self, raw: bytes, tree: Tree) -> Elements:
        for name, (kind, value, end) in iter_spans(raw):
            inside = raw[value:end]
            if name == b"updatedFields":
                inside = document(*self._paths(inside, tree))
            elif name == b"removedFields":
                kept = [
                    inside[start:stop]
                    for _, (_, start, stop) in iter_spans(inside)
                    if _at(tree, inside[start + 4 : stop - 1]) != DROP
                ]
                inside = document(*(element(b"%d" % at, STRING, x) for at, x in enumerate(kept)))
            yield element(name, kind, inside)

    def _paths(self, raw: bytes, tree: Tree) -> Elements:
        """Values under dotted paths."""
        for path, (kind, value, end) in iter_spans(raw):
            rule = _at(tree, path)
            if rule != DROP:
                yield element(path, *self.value(kind, raw[value:end], rule))


def _named(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    for name, (kind, value, end) in iter_spans(raw):
        yield name, element(name, kind, raw[value:end])


def _below(rule: Any, name: bytes) -> Any:
    """The rule of a field below a rule."""
    if isinstance(rule, dict):
        return rule.get(name)
    return HASH if rule == HASH else None


def _at(tree: Tree, path: bytes) -> Any:
    """The rule at a dotted path, whose numbers may be items of arrays."""
    rule: Any = tree
    for step in path.split(b"."):
        below = _below(rule, step)
        if below is None and step.isdigit() and isinstance(rule, dict):
            continue
        if below is None or below == DROP:
            return below
        rule = below
    return None if rule is tree else rule
