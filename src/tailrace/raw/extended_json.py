"""Documents as canonical Extended JSON: text that tells every BSON type apart.

Written from the bytes, value by value, without making Python objects of them. The text is
the one that PyMongo's ``json_util`` writes in its canonical mode; but for three types that
PyMongo turns into others (symbol, undefined, DBPointer), which keep their own form here.

Spec: Extended JSON 2.0.0. JSON cannot say what is no UTF-8: such bytes show as U+FFFD.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from struct import Struct

from bson.decimal128 import Decimal128

from tailrace.errors import BadBson
from tailrace.raw.elements import (
    ARRAY,
    BINARY,
    BOOL,
    CODE,
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
    all_spans,
)

_DOUBLE = Struct("<d").unpack_from
_INT32 = Struct("<i").unpack_from
_INT64 = Struct("<q").unpack_from
_TIMESTAMP = Struct("<II").unpack_from
_INFINITY = float("inf")
OLD_BINARY = 2
MAX_NAMES = 20_000
"""Past this many field names the remembered ones start anew."""
MAX_DEPTH = 200
"""BSON itself nests no deeper."""
_names: dict[bytes, str] = {}


def canonical(raw: bytes) -> str:
    """A document's canonical Extended JSON."""
    return _document(raw, 0, 0)


def _document(buffer: bytes, start: int, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise BadBson("a document that nests too deep", offset=start)
    names, values, found = _names, _VALUES, []
    for name, (kind, value, stop) in all_spans(buffer, start):
        text = names.get(name)
        if text is None:
            text = _name(name)
        write = values.get(kind)
        if write is None:
            found.append(text + _nested(buffer, kind, value, stop, depth))
        else:
            found.append(text + write(buffer, value, stop))
    return "{" + ", ".join(found) + "}"


def _array(buffer: bytes, start: int, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise BadBson("an array that nests too deep", offset=start)
    found = []
    for _, (kind, value, stop) in all_spans(buffer, start):
        write = _VALUES.get(kind)
        if write is None:
            found.append(_nested(buffer, kind, value, stop, depth))
        else:
            found.append(write(buffer, value, stop))
    return "[" + ", ".join(found) + "]"


def _nested(buffer: bytes, kind: int, value: int, stop: int, depth: int) -> str:
    """The values that hold documents."""
    if kind == OBJECT:
        return _document(buffer, value, depth + 1)
    if kind == ARRAY:
        return _array(buffer, value, depth + 1)
    size = _INT32(buffer, value + 4)[0]
    scope = value + 8 + size
    if size < 1 or scope > stop:
        raise BadBson("code whose length is no length", offset=value)
    code = _text(buffer[value + 8 : scope - 1])
    return f'{{"$code": {code}, "$scope": {_document(buffer, scope, depth + 1)}}}'


def _name(name: bytes) -> str:
    if len(_names) >= MAX_NAMES:
        _names.clear()
    text = _names[name] = _text(name) + ": "
    return text


def _text(raw: bytes) -> str:
    return encode_basestring_ascii(raw.decode("utf-8", "replace"))


def _string(buffer: bytes, value: int, stop: int) -> str:
    return encode_basestring_ascii(buffer[value + 4 : stop - 1].decode("utf-8", "replace"))


def _double(buffer: bytes, value: int, stop: int) -> str:
    number = _DOUBLE(buffer, value)[0]
    if number != number:  # noqa: PLR0124 - only a NaN is not itself
        text = "NaN"
    elif number in (_INFINITY, -_INFINITY):
        text = "Infinity" if number > 0 else "-Infinity"
    else:
        text = repr(number)
    return f'{{"$numberDouble": "{text}"}}'


def _int32(buffer: bytes, value: int, stop: int) -> str:
    return f'{{"$numberInt": "{_INT32(buffer, value)[0]}"}}'


def _int64(buffer: bytes, value: int, stop: int) -> str:
    return f'{{"$numberLong": "{_INT64(buffer, value)[0]}"}}'


def _date(buffer: bytes, value: int, stop: int) -> str:
    return f'{{"$date": {{"$numberLong": "{_INT64(buffer, value)[0]}"}}}}'


def _object_id(buffer: bytes, value: int, stop: int) -> str:
    return f'{{"$oid": "{buffer[value:stop].hex()}"}}'


def _bool(buffer: bytes, value: int, stop: int) -> str:
    return "true" if buffer[value] else "false"


def _timestamp(buffer: bytes, value: int, stop: int) -> str:
    increment, seconds = _TIMESTAMP(buffer, value)
    return f'{{"$timestamp": {{"t": {seconds}, "i": {increment}}}}}'


def _decimal(buffer: bytes, value: int, stop: int) -> str:
    return f'{{"$numberDecimal": "{Decimal128.from_bid(buffer[value:stop])}"}}'


def _binary(buffer: bytes, value: int, stop: int) -> str:
    subtype = buffer[value + 4]
    data = buffer[value + 5 : stop]
    if subtype == OLD_BINARY:
        data = data[4:]  # it repeats its length
    text = b64encode(data).decode()
    return f'{{"$binary": {{"base64": "{text}", "subType": "{subtype:02x}"}}}}'


def _regex(buffer: bytes, value: int, stop: int) -> str:
    pattern, _, options = buffer[value : stop - 1].partition(b"\x00")
    return f'{{"$regularExpression": {{"pattern": {_text(pattern)}, "options": {_text(options)}}}}}'


def _code(buffer: bytes, value: int, stop: int) -> str:
    return f'{{"$code": {_string(buffer, value, stop)}}}'


def _symbol(buffer: bytes, value: int, stop: int) -> str:
    return f'{{"$symbol": {_string(buffer, value, stop)}}}'


def _db_pointer(buffer: bytes, value: int, stop: int) -> str:
    name = _string(buffer, value, stop - 12)
    return f'{{"$dbPointer": {{"$ref": {name}, "$id": {_object_id(buffer, stop - 12, stop)}}}}}'


def _fixed(text: str) -> Callable[[bytes, int, int], str]:
    def write(buffer: bytes, value: int, stop: int) -> str:
        return text

    return write


_VALUES: dict[int, Callable[[bytes, int, int], str]] = {
    DOUBLE: _double,
    STRING: _string,
    BINARY: _binary,
    UNDEFINED: _fixed('{"$undefined": true}'),
    OBJECT_ID: _object_id,
    BOOL: _bool,
    DATE: _date,
    NULL: _fixed("null"),
    REGEX: _regex,
    DB_POINTER: _db_pointer,
    CODE: _code,
    SYMBOL: _symbol,
    INT32: _int32,
    TIMESTAMP: _timestamp,
    INT64: _int64,
    DECIMAL: _decimal,
    MIN_KEY: _fixed('{"$minKey": 1}'),
    MAX_KEY: _fixed('{"$maxKey": 1}'),
}
"""What writes a value, by its type; objects, arrays and code with scope hold documents."""
