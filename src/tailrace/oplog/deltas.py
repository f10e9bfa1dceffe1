"""What update entries hold, and what they make of a document.

A diff has the sections ``d`` (removed), ``u`` (changed), ``i`` (new), ``b`` (binary,
time series only) and one ``s<field>`` per document or array that is changed inside;
an array's diff begins with ``a: true`` and has ``l`` (new length), ``u<index>`` and
``s<index>``. ``apply_diff`` is the server's own rule, field order included: changed
fields stay where they are, new ones go to the end, also when they were there.
``apply_delta`` takes an entry's whole ``o``, a diff of ``$v: 2`` or modifiers of ``$v: 1``.

Format: facts/server-semantics, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tailrace.errors import BadBson
from tailrace.oplog.modifiers import MODIFIERS, MOST_PADDING, apply_modifiers
from tailrace.raw import Span, document, element, iter_spans, spans
from tailrace.raw.elements import ARRAY, INT32, INT64, NULL, OBJECT

ARRAY_MARK = b"\x08a\x00\x01"
"""The element ``a: true``."""
ARRAY_LENGTH = b"l"
REMOVED, CHANGED, ADDED, BINARY = b"d", b"u", b"i", b"b"
SECTIONS = frozenset((CHANGED, ADDED, BINARY))
"""The sections of a document's diff that hold new values, in this order in every diff."""
MAX_DIFF_DEPTH = 200
"""BSON itself nests no deeper."""


@dataclass(slots=True)
class Diff:
    """One level of a document's diff, its sections told apart."""

    removed: list[bytes] = field(default_factory=list)
    changed: list[tuple[bytes, Span]] = field(default_factory=list)
    added: list[tuple[bytes, Span]] = field(default_factory=list)
    binary: list[tuple[bytes, Span]] = field(default_factory=list)
    inside: list[tuple[bytes, Span]] = field(default_factory=list)


def read_diff(buffer: bytes, start: int) -> Diff:
    """The sections of the document diff at ``start``."""
    diff = Diff()
    sections = {b"u": diff.changed, b"i": diff.added, b"b": diff.binary}
    for name, span in iter_spans(buffer, start):
        if span[0] != OBJECT:
            raise BadBson("a section of a diff is not a document", offset=span[1])
        if name == b"d":
            diff.removed.extend(removed for removed, _ in iter_spans(buffer, span[1]))
        elif name in sections:
            sections[name].extend(iter_spans(buffer, span[1]))
        elif name[:1] == b"s":
            diff.inside.append((name[1:], span))
        else:
            raise BadBson(f"a diff with an unknown section {name!r}", offset=span[1])
    return diff


def is_array_diff(buffer: bytes, start: int) -> bool:
    """Whether the diff at ``start`` is an array's."""
    if not buffer[start + 4]:
        raise BadBson("an empty diff", offset=start)
    return buffer.startswith(ARRAY_MARK, start + 4)


def array_changes(buffer: bytes, start: int) -> Iterator[tuple[bytes, bytes, Span]]:
    """An array diff's parts in order: (``l`` | ``u`` | ``s``, index digits, span)."""
    parts = iter_spans(buffer, start)
    next(parts)
    for name, span in parts:
        kind, index = name[:1], name[1:]
        if name == ARRAY_LENGTH and span[0] in (INT32, INT64):
            yield ARRAY_LENGTH, b"", span
        elif kind in (b"u", b"s") and index.isdigit():
            yield kind, index, span
        else:
            raise BadBson(f"an array diff with an unknown part {name!r}", offset=span[1])


def apply_delta(before: bytes, delta: bytes) -> bytes:
    """The document that ``before`` becomes by an update entry's ``o``."""
    fields = spans(delta)
    if b"diff" in fields:
        kind, start, end = fields[b"diff"]
        if kind == OBJECT:
            return apply_diff(before, delta[start:end])
    elif not fields.keys().isdisjoint(MODIFIERS) and fields.keys() <= {*MODIFIERS, b"$v"}:
        return apply_modifiers(before, delta, fields)
    raise BadBson("neither a diff nor modifiers", offset=0)


def apply_diff(before: bytes, diff: bytes) -> bytes:
    """The document that ``before`` becomes by the ``diff`` of a ``$v: 2`` update."""
    return _apply_document(before, 0, diff, 0, 0)


def _apply_document(before: bytes, start: int, diff: bytes, at: int, depth: int) -> bytes:
    if depth > MAX_DIFF_DEPTH:
        raise BadBson("a diff that nests too deep", offset=at)
    parts = read_diff(diff, at)
    changed = dict(parts.changed)
    inside = dict(parts.inside)
    gone = {*parts.removed, *(name for name, _ in parts.added)}
    kept: list[bytes] = []
    placed: set[bytes] = set()
    for name, (kind, value, stop) in iter_spans(before, start):
        if name in gone:
            continue
        if name in changed:
            kept.append(_copy(name, diff, changed[name]))
            placed.add(name)
        elif name in inside:
            kept.append(_apply_inside(name, before, (kind, value, stop), diff, inside[name], depth))
        else:
            kept.append(element(name, kind, before[value:stop]))
    for name, span in (*parts.changed, *parts.added):
        if name not in placed:
            kept.append(_copy(name, diff, span))
    return document(*kept)


def _apply_inside(
    name: bytes, before: bytes, old: Span, diff: bytes, change: Span, depth: int
) -> bytes:
    """A field whose value changes inside; one that is no longer of that kind stays as it is."""
    kind, value, stop = old
    for_array = is_array_diff(diff, change[1])
    if kind == ARRAY and for_array:
        return element(name, ARRAY, _apply_array(before, value, diff, change[1], depth + 1))
    if kind == OBJECT and not for_array:
        return element(name, OBJECT, _apply_document(before, value, diff, change[1], depth + 1))
    return element(name, kind, before[value:stop])


def _apply_array(before: bytes, start: int, diff: bytes, at: int, depth: int) -> bytes:
    old = [span for _, span in iter_spans(before, start)]
    items = [(kind, before[value:stop]) for kind, value, stop in old]
    length: int | None = None
    for part, digits, span in array_changes(diff, at):
        if part == ARRAY_LENGTH:
            length = int.from_bytes(diff[span[1] : span[2]], "little", signed=True)
            del items[length:]
            continue
        index = int(digits)
        if part == b"u":
            _pad(items, index + 1)
            items[index] = (span[0], diff[span[1] : span[2]])
        elif index < len(items):
            changed = _apply_inside(b"", before, old[index], diff, span, depth)
            items[index] = (changed[0], changed[2:])
    if length is not None:
        _pad(items, length)
    return document(*(element(b"%d" % at, *item) for at, item in enumerate(items)))


def _pad(items: list[tuple[int, bytes]], length: int) -> None:
    missing = length - len(items)
    if missing > MOST_PADDING:
        raise BadBson("a diff that reaches too far behind its array's end", offset=0)
    items.extend([(NULL, b"")] * missing)


def _copy(name: bytes, buffer: bytes, span: Span) -> bytes:
    return element(name, span[0], buffer[span[1] : span[2]])
