"""``updateDescription``: what an update entry says, in the words of change streams.

``updatedFields``, ``removedFields`` and ``truncatedArrays`` flatten the diff's tree
into dotted paths, in the server's order: at each level the changed fields, then the
new ones, then the removed ones, then the levels below. ``disambiguatedPaths`` lists
the paths that dots or numeric names make ambiguous. Older entries (``$v: 1``, up to
6.0) name ``$set`` and ``$unset`` instead and know no truncation.

Format: facts/server-semantics, section 3.2. Knows diffs, not entries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tailrace.errors import BadBson
from tailrace.oplog.deltas import ARRAY_LENGTH, array_changes, is_array_diff, read_diff
from tailrace.raw import Span, document, element, iter_spans, string_value
from tailrace.raw.elements import ARRAY, INT32, OBJECT, STRING

Step = bytes | int
"""A path's step: a field name or an array index."""


@dataclass(slots=True)
class _Description:
    updated: list[bytes] = field(default_factory=list)
    removed: list[bytes] = field(default_factory=list)
    truncated: list[bytes] = field(default_factory=list)
    ambiguous: dict[bytes, tuple[Step, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Path:
    """The way down to a level of the diff."""

    joined: bytes = b""
    steps: tuple[Step, ...] = ()
    ambiguous: bool = False

    def field(self, name: bytes) -> _Path:
        numeric = bool(self.steps) and _is_strictly_numeric(name)
        return self._extended(name, name, b"." in name or numeric)

    def index(self, digits: bytes) -> _Path:
        return self._extended(digits, int(digits), False)

    def _extended(self, text: bytes, step: Step, ambiguous: bool) -> _Path:
        joined = self.joined + b"." + text if self.steps else text
        return _Path(joined, (*self.steps, step), self.ambiguous or ambiguous)


def describe_diff(buffer: bytes, start: int, with_paths: bool) -> bytes:
    """``updateDescription`` for the ``$v: 2`` diff at ``start``."""
    found = _Description()
    _walk_document(found, buffer, start, _Path())
    parts = [
        element(b"updatedFields", OBJECT, document(*found.updated)),
        element(b"removedFields", ARRAY, _string_array(found.removed)),
        element(b"truncatedArrays", ARRAY, _array(OBJECT, found.truncated)),
    ]
    if with_paths:
        paths = [element(path, ARRAY, _steps(steps)) for path, steps in found.ambiguous.items()]
        parts.append(element(b"disambiguatedPaths", OBJECT, document(*paths)))
    return document(*parts)


def describe_modifiers(buffer: bytes, body: dict[bytes, Span]) -> bytes:
    """``updateDescription`` for a ``$v: 1`` update: its ``$set`` and ``$unset``."""
    changed, removed = body.get(b"$set"), body.get(b"$unset")
    names = [name for name, _ in iter_spans(buffer, removed[1])] if removed else []
    return document(
        element(
            b"updatedFields", OBJECT, buffer[changed[1] : changed[2]] if changed else document()
        ),
        element(b"removedFields", ARRAY, _string_array(names)),
    )


def _walk_document(found: _Description, buffer: bytes, start: int, path: _Path) -> None:
    diff = read_diff(buffer, start)
    for name, (kind, value, stop) in (*diff.changed, *diff.added, *diff.binary):
        below = path.field(name)
        found.updated.append(element(below.joined, kind, buffer[value:stop]))
        _note(found, below)
    for name in diff.removed:
        below = path.field(name)
        found.removed.append(below.joined)
        _note(found, below)
    for name, span in diff.inside:
        _walk_inside(found, buffer, span, path.field(name))


def _walk_inside(found: _Description, buffer: bytes, span: Span, path: _Path) -> None:
    if span[0] != OBJECT:
        raise BadBson("a diff inside a field is not a document", offset=span[1])
    if not is_array_diff(buffer, span[1]):
        _walk_document(found, buffer, span[1], path)
        return
    for part, digits, (kind, value, stop) in array_changes(buffer, span[1]):
        if part == ARRAY_LENGTH:
            size = element(b"newSize", kind, buffer[value:stop])
            name = element(b"field", STRING, string_value(path.joined))
            found.truncated.append(document(name, size))
            _note(found, path)
        elif part == b"u":
            below = path.index(digits)
            found.updated.append(element(below.joined, kind, buffer[value:stop]))
            _note(found, below)
        else:
            _walk_inside(found, buffer, (kind, value, stop), path.index(digits))


def _note(found: _Description, path: _Path) -> None:
    if path.ambiguous:
        found.ambiguous[path.joined] = path.steps


def _is_strictly_numeric(name: bytes) -> bool:
    return name.isdigit() and (name == b"0" or name[:1] != b"0")


def _steps(steps: tuple[Step, ...]) -> bytes:
    parts = []
    for at, step in enumerate(steps):
        if isinstance(step, int):
            parts.append(element(b"%d" % at, INT32, step.to_bytes(4, "little")))
        else:
            parts.append(element(b"%d" % at, STRING, string_value(step)))
    return document(*parts)


def _string_array(names: list[bytes]) -> bytes:
    return _array(STRING, [string_value(name) for name in names])


def _array(kind: int, values: list[bytes]) -> bytes:
    return document(*(element(b"%d" % at, kind, value) for at, value in enumerate(values)))
