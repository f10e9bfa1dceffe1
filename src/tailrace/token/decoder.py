"""KeyString bytes read back into BSON values.

The counterpart of ``encoder``: total on everything that a server writes, and
``BadToken`` with the server's code on all other bytes, at the hex digit where they
stop making sense. Values come as type byte and raw bytes, as everywhere else. A
number's type comes from the type bits; one that was lost makes it an int32, cut off
where it does not fit, exactly as the server reads it.

Spec: facts/server-semantics, 1.1 to 1.5 and 2.4. Numbers: ``decoded_numbers``.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.raw import document, element, string_value
from tailrace.raw.elements import (
    ARRAY,
    BINARY,
    BOOL,
    CODE,
    CODE_SCOPE,
    DATE,
    DB_POINTER,
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
from tailrace.token.ctypes import (
    C_ARRAY,
    C_BINARY,
    C_CODE,
    C_CODE_SCOPE,
    C_DATE,
    C_DB_POINTER,
    C_FALSE,
    C_MAX_KEY,
    C_MIN_KEY,
    C_NULL,
    C_NUMERIC,
    C_OBJECT,
    C_OBJECT_ID,
    C_POSITIVE_LARGE,
    C_REGEX,
    C_STRING,
    C_TIMESTAMP,
    C_TRUE,
    C_UNDEFINED,
    END,
)
from tailrace.token.decoded_numbers import read_number
from tailrace.token.reader import Reader
from tailrace.token.typebits import Bits

Value = tuple[int, bytes]
"""A BSON type byte and the value's bytes."""

UNKNOWN_TYPE = 50811
TOO_DEEP = 15
MAX_DEPTH = 200
"""BSON nests no deeper."""
_LONG_BINARY = 0xFF


def decode(key: bytes, type_bits: bytes = b"") -> list[tuple[int, Value]]:
    """The values of a key, each with the byte it begins at; what follows the end is ignored."""
    reader = Reader(key, Bits(type_bits))
    values = []
    while reader.at < len(key) and key[reader.at] != END:
        start = reader.at
        values.append((start, _read(reader, 0)))
    return values


def _read(reader: Reader, depth: int) -> Value:
    start = reader.at
    ctype = reader.byte()
    read = _READERS.get(ctype)
    if read is None:
        raise reader.broken(f"0x{ctype:02X} begins no value", UNKNOWN_TYPE, start)
    if depth > MAX_DEPTH:
        raise reader.broken("values nest too deep", TOO_DEEP, start)
    return read(reader, ctype, depth)


def _object(reader: Reader, _ctype: int, depth: int) -> Value:
    return OBJECT, _fields(reader, depth)


def _fields(reader: Reader, depth: int) -> bytes:
    parts = []
    while reader.byte():
        name = reader.until_zero()
        kind, raw = _read(reader, depth + 1)
        parts.append(element(name, kind, raw))
    return document(*parts)


def _array(reader: Reader, _ctype: int, depth: int) -> Value:
    parts: list[bytes] = []
    while reader.peek():
        kind, raw = _read(reader, depth + 1)
        parts.append(element(b"%d" % len(parts), kind, raw))
    reader.byte()
    return ARRAY, document(*parts)


def _string(reader: Reader, _ctype: int, _depth: int) -> Value:
    return (SYMBOL if reader.bits.take() else STRING), string_value(reader.text())


def _code(reader: Reader, _ctype: int, _depth: int) -> Value:
    return CODE, string_value(reader.text())


def _code_scope(reader: Reader, _ctype: int, depth: int) -> Value:
    code = string_value(reader.text())
    scope = _fields(reader, depth)
    return CODE_SCOPE, (4 + len(code) + len(scope)).to_bytes(4, "little") + code + scope


def _binary(reader: Reader, _ctype: int, _depth: int) -> Value:
    size = reader.byte()
    if size == _LONG_BINARY:
        size = int.from_bytes(reader.take(4), "big")
    return BINARY, size.to_bytes(4, "little") + reader.take(size + 1)


def _date(reader: Reader, _ctype: int, _depth: int) -> Value:
    millis = int.from_bytes(reader.take(8), "big") - (1 << 63)
    return DATE, millis.to_bytes(8, "little", signed=True)


def _timestamp(reader: Reader, _ctype: int, _depth: int) -> Value:
    return TIMESTAMP, reader.take(8)[::-1]


def _object_id(reader: Reader, _ctype: int, _depth: int) -> Value:
    return OBJECT_ID, reader.take(12)


def _regex(reader: Reader, _ctype: int, _depth: int) -> Value:
    pattern = reader.until_zero()
    return REGEX, b"%b\x00%b\x00" % (pattern, reader.until_zero())


def _db_pointer(reader: Reader, _ctype: int, _depth: int) -> Value:
    name = reader.take(int.from_bytes(reader.take(4), "big"))
    return DB_POINTER, string_value(name) + reader.take(12)


def _bool(_reader: Reader, ctype: int, _depth: int) -> Value:
    return BOOL, b"\x01" if ctype == C_TRUE else b"\x00"


def _constant(kind: int) -> Callable[[Reader, int, int], Value]:
    return lambda _reader, _ctype, _depth: (kind, b"")


def _number(reader: Reader, ctype: int, _depth: int) -> Value:
    return read_number(reader, ctype)


_READERS: dict[int, Callable[[Reader, int, int], Value]] = {
    C_MIN_KEY: _constant(MIN_KEY),
    C_UNDEFINED: _constant(UNDEFINED),
    C_NULL: _constant(NULL),
    **dict.fromkeys(range(C_NUMERIC, C_POSITIVE_LARGE + 1), _number),
    C_STRING: _string,
    C_OBJECT: _object,
    C_ARRAY: _array,
    C_BINARY: _binary,
    C_OBJECT_ID: _object_id,
    C_FALSE: _bool,
    C_TRUE: _bool,
    C_DATE: _date,
    C_TIMESTAMP: _timestamp,
    C_REGEX: _regex,
    C_DB_POINTER: _db_pointer,
    C_CODE: _code,
    C_CODE_SCOPE: _code_scope,
    C_MAX_KEY: _constant(MAX_KEY),
}
"""The byte that opens a value to what reads the rest of it."""
