"""BSON read in place: where each element of a document lies, without decoding it.

The engine copies documents far more often than it looks into them, so the unit
here is the *span*: an element's type byte and the bounds of its value inside the
bytes that it came in. Nothing is decoded until somebody asks for it by type.

Spec: BSON 1.1 (bsonspec). Bytes that are not BSON raise ``BadBson`` and nothing
else. This room knows no oplog, no event and no token.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from tailrace.errors import BadBson

DOUBLE, STRING, OBJECT, ARRAY, BINARY, UNDEFINED, OBJECT_ID, BOOL = range(1, 9)
DATE, NULL, REGEX, DB_POINTER, CODE, SYMBOL, CODE_SCOPE, INT32 = range(9, 17)
TIMESTAMP, INT64, DECIMAL = range(17, 20)
MAX_KEY, MIN_KEY = 0x7F, 0xFF

Span = tuple[int, int, int]
"""Type byte, start and end of a value within its buffer."""

_FIXED_BYTES = {
    DOUBLE: 8,
    UNDEFINED: 0,
    OBJECT_ID: 12,
    BOOL: 1,
    DATE: 8,
    NULL: 0,
    INT32: 4,
    TIMESTAMP: 8,
    INT64: 8,
    DECIMAL: 16,
    MAX_KEY: 0,
    MIN_KEY: 0,
}
_INT32 = Struct("<i").unpack_from
_COUNTED_EXTRA_BYTES = {
    STRING: 4,
    OBJECT: 0,
    ARRAY: 0,
    BINARY: 5,
    DB_POINTER: 16,
    CODE: 4,
    SYMBOL: 4,
    CODE_SCOPE: 0,
}


def spans(buffer: bytes, start: int = 0) -> dict[bytes, Span]:
    """Each field's span of the document at ``start``, in order; a repeated name keeps its last."""
    return dict(all_spans(buffer, start))


def all_spans(buffer: bytes, start: int = 0) -> list[tuple[bytes, Span]]:
    """The fields of the document (or array) at ``start``, all at once.

    The loop of ``iter_spans`` is written out: it is what most of the time goes into.
    """
    found: list[tuple[bytes, Span]] = []
    end = start + int.from_bytes(buffer[start : start + 4], "little") - 1
    if not start + 4 <= end < len(buffer) or buffer[end]:
        raise BadBson("not a BSON document", offset=start)
    at = start + 4
    fixed, counted, find, int32 = _FIXED_BYTES, _COUNTED_EXTRA_BYTES, buffer.find, _INT32
    while at < end:
        kind = buffer[at]
        value = find(0, at + 1, end) + 1
        if not value:
            raise BadBson("a field name does not end", offset=at)
        size = fixed.get(kind)
        if size is None:
            extra = counted.get(kind)
            if extra is None or value + 4 > end:
                size = _variable_bytes(buffer, value, end, kind)
            else:
                size = int32(buffer, value)[0] + extra
                if size < extra:
                    raise BadBson("a value of negative length", offset=value)
        stop = value + size
        if stop > end:
            raise BadBson("a value reaches past the end of its document", offset=value)
        found.append((buffer[at + 1 : value - 1], (kind, value, stop)))
        at = stop
    return found


def iter_spans(buffer: bytes, start: int = 0) -> Iterator[tuple[bytes, Span]]:
    """The fields of the document (or array) at ``start``, one by one."""
    end = document_end(buffer, start) - 1
    at = start + 4
    while at < end:
        kind = buffer[at]
        value = buffer.find(0, at + 1, end) + 1
        if not value:
            raise BadBson("a field name does not end", offset=at)
        size = _FIXED_BYTES.get(kind)
        stop = value + (_variable_bytes(buffer, value, end, kind) if size is None else size)
        if stop > end:
            raise BadBson("a value reaches past the end of its document", offset=value)
        yield buffer[at + 1 : value - 1], (kind, value, stop)
        at = stop


def document_end(buffer: bytes, start: int = 0) -> int:
    """Where the document that begins at ``start`` ends, its length and last byte checked."""
    size = int.from_bytes(buffer[start : start + 4], "little")
    end = start + size
    if size < 5 or end > len(buffer) or buffer[end - 1]:
        raise BadBson("not a BSON document", offset=start)
    return end


def element(name: bytes, kind: int, value: bytes) -> bytes:
    """One element's bytes."""
    return b"%c%b\x00%b" % (kind, name, value)


def document(*elements: bytes) -> bytes:
    """A document (or array) from the bytes of its elements."""
    body = b"".join(elements)
    return b"%b%b\x00" % ((len(body) + 5).to_bytes(4, "little"), body)


def string_value(text: bytes) -> bytes:
    """The value of a string element from its UTF-8 bytes."""
    return b"%b%b\x00" % ((len(text) + 1).to_bytes(4, "little"), text)


def text_of(buffer: bytes, span: Span) -> bytes:
    """The UTF-8 bytes of a string (symbol, code) value."""
    _, start, end = span
    return buffer[start + 4 : end - 1]


def _variable_bytes(buffer: bytes, value: int, end: int, kind: int) -> int:
    extra = _COUNTED_EXTRA_BYTES.get(kind)
    if extra is not None:
        size = int.from_bytes(buffer[value : value + 4], "little", signed=True)
        if value + 4 > end or size < 0:
            raise BadBson("a value whose length is no length", offset=value)
        return size + extra
    if kind != REGEX:
        raise BadBson(f"unknown BSON type 0x{kind:02X}", offset=value)
    options = buffer.find(0, value, end) + 1
    stop = options and buffer.find(0, options, end) + 1
    if not stop:
        raise BadBson("a regular expression does not end", offset=value)
    return stop - value
