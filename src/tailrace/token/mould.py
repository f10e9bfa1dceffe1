"""The constant bytes of the tokens of one operation on one collection.

The hot path of the engine: one token for each CRUD event. Whatever does not change
is hex already when the mould is made, and the keys that nearly every collection has
(``{_id: ObjectId}``, an integer, a whole double, a UUID, a string) are put between
two constant pieces. Every other key goes through the general encoder; both ways give
the same bytes.
"""

from __future__ import annotations

import struct
from binascii import hexlify
from collections.abc import Callable

from tailrace.raw import document, element, string_value
from tailrace.raw.elements import OBJECT, STRING
from tailrace.token.encoder import Encoder
from tailrace.token.layout import NEWEST_VERSION, event_token
from tailrace.token.numbers import INT64_MIN, LARGE, integer_code
from tailrace.token.typebits import pack

_DOUBLE = struct.Struct("<d")
_OBJECT_ID_HEAD = b"\x16\x00\x00\x00\x07_id\x00"
_STRING_HEAD = b"\x02_id\x00"
_STRING_AROUND = 14
"""A document of one string named ``_id`` is this much longer than the string's bytes."""
_UUID_SIZE_AND_SUBTYPE = b"\x10\x00\x00\x00\x04"
_FIRST = b"29"
_FAR_INDEX = 1 << 31
_HEADS = {0: b"82%016X29%b", 1: b"82%016X2B022C0100%b6E", 2: b"82%016X2B042C0100%b6E"}
_KEY_BITS = {0: b"0000", 1: b"000000", 2: b"0000000"}
"""Type bits ahead of the key's: version, token type, index; in version 2 the operation type."""
_INT64_BITS = {version: pack(bits + b"01") for version, bits in _KEY_BITS.items()}
_DOUBLE_BITS = {version: pack(bits + b"10") for version, bits in _KEY_BITS.items()}


class TokenMould:
    """Makes the tokens of one operation type on one collection."""

    __slots__ = (
        "_general",
        "_legal",
        "_number",
        "_object_id",
        "_operation",
        "_string",
        "_uuid",
        "_uuid_key",
        "_version",
    )

    def __init__(self, version: int, uuid: bytes | None, operation: bytes) -> None:
        self._version, self._uuid, self._operation = version, uuid, operation
        self._legal = version in _HEADS and (uuid is not None or version >= NEWEST_VERSION)
        head = _HEADS.get(version, b"")
        head += b"14" if uuid is None else b"5A1004" + _hex(uuid)
        tail = b"04"
        if version >= NEWEST_VERSION:
            named = b"F\x3coperationType\x00\x3c%b\x00FdocumentKey\x00" % operation
            head += _hex(named)
            tail = b"0004"
        tail = b"%b" + tail
        self._general = head + b"46" + tail
        self._object_id = head + b"46645F69640064%b00" + tail[2:]
        self._number = head + b"461E5F696400%b00" + tail[2:]
        self._string = head + b"463C5F6964003C%b0000" + tail[2:]
        self._uuid_key = head + b"465A5F6964005A1004%b00" + tail[2:]

    def token(self, time: int, index: int, key: bytes) -> tuple[bytes, bytes]:
        """``_data`` and type bits for a time, an index in the transaction and a document key."""
        place = b"%X" % integer_code(index) if index else _FIRST
        head = key[:9]
        if self._legal:
            if head == _OBJECT_ID_HEAD:
                return self._object_id % (time, place, hexlify(key[9:21]).upper()), b""
            if index < _FAR_INDEX:
                return _SHAPES.get(head, _string_or_other)(self, time, place, key)
        return event_token(self._version, time, index, self._uuid, self._identifier(key))

    def _identifier(self, key: bytes) -> bytes:
        if self._version < NEWEST_VERSION:
            return key
        return document(
            element(b"operationType", STRING, string_value(self._operation)),
            element(b"documentKey", OBJECT, key),
        )


def _int32(mould: TokenMould, time: int, place: bytes, key: bytes) -> tuple[bytes, bytes]:
    number = int.from_bytes(key[9:13], "little", signed=True)
    return mould._number % (time, place, b"%X" % integer_code(number)), b""


def _int64(mould: TokenMould, time: int, place: bytes, key: bytes) -> tuple[bytes, bytes]:
    number = int.from_bytes(key[9:17], "little", signed=True)
    if number == INT64_MIN:
        return _other(mould, time, place, key)
    code = b"%X" % integer_code(number)
    return mould._number % (time, place, code), _INT64_BITS[mould._version]


def _double(mould: TokenMould, time: int, place: bytes, key: bytes) -> tuple[bytes, bytes]:
    number = _DOUBLE.unpack_from(key, 9)[0]
    if number and -LARGE < number < LARGE:
        whole = int(number)
        if whole == number:
            code = b"%X" % integer_code(whole)
            return mould._number % (time, place, code), _DOUBLE_BITS[mould._version]
    return _other(mould, time, place, key)


def _binary(mould: TokenMould, time: int, place: bytes, key: bytes) -> tuple[bytes, bytes]:
    if key[9:14] != _UUID_SIZE_AND_SUBTYPE:
        return _other(mould, time, place, key)
    return mould._uuid_key % (time, place, _hex(key[14:30])), b""


def _string_or_other(mould: TokenMould, time: int, place: bytes, key: bytes) -> tuple[bytes, bytes]:
    if key[4:9] == _STRING_HEAD:
        text = key[13:-2]
        if int.from_bytes(key[9:13], "little") == len(key) - _STRING_AROUND and 0 not in text:
            return mould._string % (time, place, _hex(text)), b""
    return _other(mould, time, place, key)


def _other(mould: TokenMould, time: int, place: bytes, key: bytes) -> tuple[bytes, bytes]:
    made = Encoder(b"", _KEY_BITS[mould._version])
    made.body(key)
    return mould._general % (time, place, _hex(made.out)), pack(made.bits)


def _hex(data: bytes | bytearray) -> bytes:
    return hexlify(data).upper()


_SHAPES: dict[bytes, Callable[[TokenMould, int, bytes, bytes], tuple[bytes, bytes]]] = {
    b"\x0e\x00\x00\x00\x10_id\x00": _int32,
    b"\x12\x00\x00\x00\x12_id\x00": _int64,
    b"\x12\x00\x00\x00\x01_id\x00": _double,
    b"\x1f\x00\x00\x00\x05_id\x00": _binary,
}
"""The first nine bytes of a document key (length, type, name) to its short way."""
