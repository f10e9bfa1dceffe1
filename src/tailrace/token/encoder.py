"""BSON values written as KeyString bytes, straight from their raw form.

A document lies in BSON in the order in which its key is written, so it is read in
one pass, whatever its depth: a type byte of 0 closes what was opened last. Every
type has one row in ``_WRITERS``.

Spec: facts/server-semantics, 1.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tailrace.errors import BadBson
from tailrace.raw import document_end
from tailrace.raw.elements import (
    ARRAY,
    BINARY,
    BOOL,
    CODE,
    CODE_SCOPE,
    DATE,
    DB_POINTER,
    DECIMAL,
    DOUBLE,
    INT32,
    INT64,
    MAX_KEY,
    MIN_KEY,
    NULL,
    OBJECT,
    OBJECT_ID,
    REGEX,
    STRING,
    SYMBOL,
    TIMESTAMP,
    UNDEFINED,
)
from tailrace.token.ctypes import C_FALSE, C_TRUE, GENERIC
from tailrace.token.decimals import decimal_key
from tailrace.token.numbers import double_key, integer_key

_LENGTH = struct.Struct("<I")
_DOUBLE = struct.Struct("<d")
_INT64 = struct.Struct("<q")
_ESCAPED_NUL = b"\x00\xff"
_LONG_BINARY = 0xFF
"""Binary of this many bytes or more has its length in four bytes, behind this one."""


_Writer = Callable[["Encoder", bytes, int], int]


class Encoder:
    """A key that grows value by value: its bytes, and its stream of type bits."""

    __slots__ = ("bits", "out")

    def __init__(self, head: bytes = b"", bits: bytes = b"") -> None:
        self.out = bytearray(head)
        self.bits = bytearray(bits)

    def value(self, kind: int, raw: bytes) -> None:
        """Append one BSON value from its type byte and its bytes."""
        _write(self, kind, raw, 0)

    def body(self, document: bytes) -> None:
        """Append the fields of a document and the byte that closes them."""
        _write_nested(self, document, 4, document_end(document), False)

    def integer(self, number: int) -> None:
        """Append an int32, or an int64 when it does not fit."""
        self.out += integer_key(number)
        self.bits += b"00" if -(1 << 31) <= number < 1 << 31 else b"01"


def _write(to: Encoder, kind: int, raw: bytes, start: int) -> int:
    try:
        return _WRITERS[kind](to, raw, start)
    except (KeyError, IndexError, struct.error):
        raise BadBson(
            "a value that BSON does not know or that is cut short", offset=start
        ) from None


def _write_nested(to: Encoder, raw: bytes, start: int, limit: int, in_array: bool) -> int:
    """Write from the first element of a document up to the end of it, all it holds included."""
    out, at, outer = to.out, start, [in_array]
    while outer:
        if at >= limit:
            raise BadBson("a document does not end", offset=start)
        kind = raw[at]
        if not kind:
            out.append(0)
            outer.pop()
            at += 1
            continue
        name = at + 1
        at = raw.find(0, name, limit) + 1
        if not at:
            raise BadBson("a field name does not end", offset=name)
        if not outer[-1]:
            generic = GENERIC.get(kind)
            if generic is None:
                raise BadBson(f"unknown BSON type 0x{kind:02X}", offset=name - 1)
            out.append(generic)
            out += raw[name:at]
        if kind in _OPENERS:
            out.append(GENERIC[kind])
            at = _OPENERS[kind](to, raw, at)
            outer.append(kind == ARRAY)
        else:
            at = _write(to, kind, raw, at)
    return at


def _open_document(_to: Encoder, _raw: bytes, start: int) -> int:
    return start + 4


def _open_scope(to: Encoder, raw: bytes, start: int) -> int:
    return _text_at(to, raw, start + 4) + 4


_OPENERS: dict[int, Callable[[Encoder, bytes, int], int]] = {
    OBJECT: _open_document,
    ARRAY: _open_document,
    CODE_SCOPE: _open_scope,
}
"""What holds fields of its own: how to get from its value to its first field."""


def _nested(kind: int) -> _Writer:
    def write(to: Encoder, raw: bytes, start: int) -> int:
        to.out.append(GENERIC[kind])
        first = _OPENERS[kind](to, raw, start)
        return _write_nested(to, raw, first, len(raw), kind == ARRAY)

    return write


def _text_at(to: Encoder, raw: bytes, start: int) -> int:
    """Write the string whose length is at ``start``; where it ends."""
    end = start + 4 + int(_LENGTH.unpack_from(raw, start)[0])
    text = raw[start + 4 : end - 1]
    if end > len(raw) or end < start + 5 or raw[end - 1]:
        raise BadBson("a string reaches past its document", offset=start)
    if 0 in text:
        text = text.replace(b"\x00", _ESCAPED_NUL)
    to.out += text
    to.out.append(0)
    return end


def _string(to: Encoder, raw: bytes, start: int) -> int:
    to.out.append(GENERIC[STRING])
    to.bits += b"0"
    return _text_at(to, raw, start)


def _symbol(to: Encoder, raw: bytes, start: int) -> int:
    to.out.append(GENERIC[STRING])
    to.bits += b"1"
    return _text_at(to, raw, start)


def _code(to: Encoder, raw: bytes, start: int) -> int:
    to.out.append(GENERIC[CODE])
    return _text_at(to, raw, start)


def _double(to: Encoder, raw: bytes, start: int) -> int:
    number = float(_DOUBLE.unpack_from(raw, start)[0])
    to.out += double_key(number)
    negative_zero = number == 0 and raw[start + 7]
    to.bits += b"11000" if negative_zero else b"10"
    return start + 8


def _int32(to: Encoder, raw: bytes, start: int) -> int:
    end = start + 4
    to.out += integer_key(int.from_bytes(_slice(raw, start, end), "little", signed=True))
    to.bits += b"00"
    return end


def _int64(to: Encoder, raw: bytes, start: int) -> int:
    end = start + 8
    to.out += integer_key(int.from_bytes(_slice(raw, start, end), "little", signed=True))
    to.bits += b"01"
    return end


def _decimal(to: Encoder, raw: bytes, start: int) -> int:
    end = start + 16
    key, bits = decimal_key(int.from_bytes(_slice(raw, start, end), "little"))
    to.out += key
    to.bits += bits
    return end


def _date(to: Encoder, raw: bytes, start: int) -> int:
    millis = int(_INT64.unpack_from(raw, start)[0])
    to.out.append(GENERIC[DATE])
    to.out += (millis + (1 << 63)).to_bytes(8, "big")
    return start + 8


def _timestamp(to: Encoder, raw: bytes, start: int) -> int:
    end = start + 8
    to.out.append(GENERIC[TIMESTAMP])
    to.out += _slice(raw, start, end)[::-1]
    return end


def _object_id(to: Encoder, raw: bytes, start: int) -> int:
    end = start + 12
    to.out.append(GENERIC[OBJECT_ID])
    to.out += _slice(raw, start, end)
    return end


def _bool(to: Encoder, raw: bytes, start: int) -> int:
    to.out.append(C_TRUE if raw[start] else C_FALSE)
    return start + 1


def _binary(to: Encoder, raw: bytes, start: int) -> int:
    size = int(_LENGTH.unpack_from(raw, start)[0])
    end = start + 5 + size
    to.out.append(GENERIC[BINARY])
    if size < _LONG_BINARY:
        to.out.append(size)
    else:
        to.out.append(_LONG_BINARY)
        to.out += size.to_bytes(4, "big")
    to.out += _slice(raw, start + 4, end)
    return end


def _regex(to: Encoder, raw: bytes, start: int) -> int:
    options = raw.find(0, start) + 1
    end = options and raw.find(0, options) + 1
    if not end:
        raise BadBson("a regular expression does not end", offset=start)
    to.out.append(GENERIC[REGEX])
    to.out += raw[start:end]
    return end


def _db_pointer(to: Encoder, raw: bytes, start: int) -> int:
    size = int(_LENGTH.unpack_from(raw, start)[0]) - 1
    end = start + 4 + size + 1 + 12
    if size < 0:
        raise BadBson("a string without its last byte", offset=start)
    to.out.append(GENERIC[DB_POINTER])
    to.out += size.to_bytes(4, "big")
    to.out += _slice(raw, start + 4, start + 4 + size)
    to.out += _slice(raw, end - 12, end)
    return end


def _constant(kind: int) -> _Writer:
    def write(to: Encoder, _raw: bytes, start: int) -> int:
        to.out.append(GENERIC[kind])
        return start

    return write


def _slice(raw: bytes, start: int, end: int) -> bytes:
    if end > len(raw):
        raise BadBson("a value reaches past the end of its document", offset=start)
    return raw[start:end]


_WRITERS: dict[int, _Writer] = {
    DOUBLE: _double,
    STRING: _string,
    OBJECT: _nested(OBJECT),
    ARRAY: _nested(ARRAY),
    BINARY: _binary,
    UNDEFINED: _constant(UNDEFINED),
    OBJECT_ID: _object_id,
    BOOL: _bool,
    DATE: _date,
    NULL: _constant(NULL),
    REGEX: _regex,
    DB_POINTER: _db_pointer,
    CODE: _code,
    SYMBOL: _symbol,
    CODE_SCOPE: _nested(CODE_SCOPE),
    INT32: _int32,
    TIMESTAMP: _timestamp,
    INT64: _int64,
    DECIMAL: _decimal,
    MAX_KEY: _constant(MAX_KEY),
    MIN_KEY: _constant(MIN_KEY),
}
"""Type byte to what appends its ctype and payload and returns where the value ends."""
