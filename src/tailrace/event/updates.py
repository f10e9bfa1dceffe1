"""``updateDescription``: what an update entry says, in the words of change streams.

``updatedFields``, ``removedFields`` and ``truncatedArrays`` flatten the diff's tree
into dotted paths, in the server's order: at each level the changed fields, then the
new ones, then the removed ones, then the levels below. ``disambiguatedPaths`` lists
the paths that dots or numeric names make ambiguous. Older entries (``$v: 1``, up to
6.0) name ``$set`` and ``$unset`` instead and know no truncation.

Format: facts/server-semantics, section 3.2. Knows diffs, not entries.
"""

from __future__ import annotations

from tailrace.errors import BadBson
from tailrace.oplog.deltas import (
    ARRAY_LENGTH,
    CHANGED,
    REMOVED,
    SECTIONS,
    array_changes,
    is_array_diff,
)
from tailrace.raw import Span, all_spans, document, element, string_value
from tailrace.raw.elements import ARRAY, INT32, OBJECT, STRING

Steps = tuple[bytes | int, ...]
"""A path's steps: field names and array indexes."""
NOTHING = document()


def describe_diff(buffer: bytes, start: int, with_paths: bool) -> bytes:
    """``updateDescription`` for the ``$v: 2`` diff at ``start``."""
    found = _Paths(buffer) if with_paths else _Fields(buffer)
    found.walk_document(start, b"", ())
    return found.description()


def describe_modifiers(buffer: bytes, body: dict[bytes, Span]) -> bytes:
    """``updateDescription`` for a ``$v: 1`` update: its ``$set`` and ``$unset``."""
    changed, removed = body.get(b"$set"), body.get(b"$unset")
    names = [name for name, _ in all_spans(buffer, removed[1])] if removed else []
    return document(
        element(b"updatedFields", OBJECT, buffer[changed[1] : changed[2]] if changed else NOTHING),
        element(b"removedFields", ARRAY, _string_array(names)),
    )


class _Fields:
    """A walk down a diff that notes what changed; ``path`` is the dotted way down."""

    def __init__(self, buffer: bytes) -> None:
        self._buffer = buffer
        self._updated: list[bytes] = []
        self._removed: list[bytes] = []
        self._truncated: list[bytes] = []

    def description(self) -> bytes:
        """All that was noted, as the event shows it."""
        updated, removed, truncated = self._updated, self._removed, self._truncated
        return document(
            b"\x03updatedFields\x00",
            document(*updated) if updated else NOTHING,
            b"\x04removedFields\x00",
            _string_array(removed) if removed else NOTHING,
            b"\x04truncatedArrays\x00",
            _array(OBJECT, truncated) if truncated else NOTHING,
            self.paths(),
        )

    def paths(self) -> bytes:
        """The ``disambiguatedPaths`` element, for whoever keeps them."""
        return b""

    def walk_document(self, start: int, path: bytes, steps: Steps) -> None:
        removed, inside = 0, []
        for name, span in all_spans(self._buffer, start):
            kind, value, stop = span
            if kind != OBJECT:
                raise BadBson("a section of a diff is not a document", offset=value)
            if name in SECTIONS:
                self.update(value, stop, path, steps)
            elif name == REMOVED:
                removed = value
            elif name[:1] == b"s":
                inside.append((name[1:], span))
            else:
                raise BadBson(f"a diff with an unknown section {name!r}", offset=value)
        if removed:
            self.remove(removed, path, steps)
        for name, span in inside:
            self._walk_inside(span, _joined(path, name) if steps else name, (*steps, name))

    def update(self, value: int, stop: int, path: bytes, steps: Steps) -> None:
        """Note the fields of a section, whose values are new."""
        buffer = self._buffer
        if not steps:
            self._updated.append(buffer[value + 4 : stop - 1])
            return
        for name, (kind, start, end) in all_spans(buffer, value):
            text = buffer[start - len(name) - 1 : end]
            self._updated.append(b"%c%b.%b" % (kind, path, text))

    def remove(self, value: int, path: bytes, steps: Steps) -> None:
        """Note the fields of a section that are gone."""
        for name, _ in all_spans(self._buffer, value):
            self._removed.append(_joined(path, name) if steps else name)

    def truncate(self, path: bytes, steps: Steps, span: Span) -> None:
        """Note an array that became shorter."""
        kind, value, stop = span
        name = element(b"field", STRING, string_value(path))
        size = element(b"newSize", kind, self._buffer[value:stop])
        self._truncated.append(document(name, size))

    def put(self, path: bytes, steps: Steps, span: Span) -> None:
        """Note an array's item that is new."""
        kind, value, stop = span
        self._updated.append(element(path, kind, self._buffer[value:stop]))

    def _walk_inside(self, span: Span, path: bytes, steps: Steps) -> None:
        kind, start, _ = span
        if kind != OBJECT:
            raise BadBson("a diff inside a field is not a document", offset=start)
        if not is_array_diff(self._buffer, start):
            self.walk_document(start, path, steps)
            return
        for part, digits, each in array_changes(self._buffer, start):
            if part == ARRAY_LENGTH:
                self.truncate(path, steps, each)
                continue
            below, way = _joined(path, digits), (*steps, int(digits))
            if part == CHANGED:
                self.put(below, way, each)
            else:
                self._walk_inside(each, below, way)


class _Paths(_Fields):
    """The same walk, noting which paths dots or numeric names make ambiguous as well."""

    def __init__(self, buffer: bytes) -> None:
        super().__init__(buffer)
        self._ambiguous: dict[bytes, Steps] = {}

    def paths(self) -> bytes:
        paths = [element(path, ARRAY, _steps(steps)) for path, steps in self._ambiguous.items()]
        return element(b"disambiguatedPaths", OBJECT, document(*paths))

    def update(self, value: int, stop: int, path: bytes, steps: Steps) -> None:
        super().update(value, stop, path, steps)
        self._note_fields(value, path, steps)

    def remove(self, value: int, path: bytes, steps: Steps) -> None:
        super().remove(value, path, steps)
        self._note_fields(value, path, steps)

    def truncate(self, path: bytes, steps: Steps, span: Span) -> None:
        super().truncate(path, steps, span)
        self._note(path, steps)

    def put(self, path: bytes, steps: Steps, span: Span) -> None:
        super().put(path, steps, span)
        self._note(path, steps)

    def _note_fields(self, value: int, path: bytes, steps: Steps) -> None:
        for name, _ in all_spans(self._buffer, value):
            self._note(_joined(path, name) if steps else name, (*steps, name))

    def _note(self, path: bytes, steps: Steps) -> None:
        if any(_is_ambiguous(step, at) for at, step in enumerate(steps)):
            self._ambiguous[path] = steps


def _is_ambiguous(step: bytes | int, depth: int) -> bool:
    if isinstance(step, int):
        return False
    return b"." in step or (depth > 0 and _is_strictly_numeric(step))


def _joined(path: bytes, name: bytes) -> bytes:
    return b"%b.%b" % (path, name)


def _is_strictly_numeric(name: bytes) -> bool:
    return name.isdigit() and (name == b"0" or name[:1] != b"0")


def _steps(steps: Steps) -> bytes:
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
