"""The elements of a resume token, in their order, from version 0 to 2.

clusterTime, version, token type (from 1), index in the transaction, whether it comes
from an invalidation (from 1), UUID (version 2 writes a null for none), event
identifier, fragment number (version 2). ``_data`` is their KeyString in upper-case
hex; its byte order is the order of the stream.

Spec: facts/server-semantics, 2.1 to 2.3.
"""

from __future__ import annotations

import re

from tailrace.errors import BadToken
from tailrace.token.ctypes import C_BINARY, C_FALSE, C_NULL, C_OBJECT, C_TIMESTAMP, C_TRUE, END
from tailrace.token.encoder import Encoder
from tailrace.token.typebits import pack

HIGH_WATER_MARK = 0
EVENT = 128
NEWEST_VERSION = 2
NO_TIME = 40649
MARK_WITH_MORE = 6189505
UUID_MARK = bytes((C_BINARY, 16, 4))
HEADER_BITS = {0: b"00", 1: b"0000", 2: b"0000"}
"""Type bits of version and token type: both are always int32."""
HEADS = {0: b"\x29", 1: b"\x2b\x02\x2c\x01\x00", 2: b"\x2b\x04\x2c\x01\x00"}
"""Version and token type of an event token."""
_TIME_DIGITS = 18
_TIME = re.compile(rb"82([0-9A-Fa-f]{16})").match
_INDEX_AT = {b"29": 20, b"2B022C0100": 28, b"2B042C0100": 28}
_HIGH_WATER_MARKS = {0: b"82%016X292904", 1: b"82%016X2B0229296E04", 2: b"82%016X2B0429296E1404"}


def event_token(
    version: int,
    time: int,
    index: int,
    uuid: bytes | None,
    identifier: bytes | None,
    *,
    from_invalidate: bool = False,
    fragment: int | None = None,
) -> tuple[bytes, bytes]:
    """``_data`` and type bits of an event's token, from any identifier in raw BSON."""
    _check(version, uuid, identifier, fragment)
    key = Encoder(b"%c%b%b" % (C_TIMESTAMP, time.to_bytes(8, "big"), HEADS[version]))
    key.bits += HEADER_BITS[version]
    key.integer(index)
    out = key.out
    if version:
        out.append(C_TRUE if from_invalidate else C_FALSE)
    if uuid is not None:
        out += UUID_MARK + uuid
    elif version >= NEWEST_VERSION:
        out.append(C_NULL)
    if identifier is not None:
        out.append(C_OBJECT)
        key.body(identifier)
    if fragment is not None:
        key.integer(fragment)
    out.append(END)
    return out.hex().upper().encode(), pack(key.bits)


def high_water_mark(time: int, version: int, uuid: bytes | None = None) -> bytes:
    """``_data`` of the token that stands before every event of a time.

    Some releases of 4.0 and 4.2 put the collection's UUID into it.
    """
    template = _HIGH_WATER_MARKS.get(version)
    if template is None:
        raise BadToken(f"no version {version} of resume tokens", code=50795, position=0)
    mark = template % time
    if uuid is None:
        return mark
    ending = b"04" if version < NEWEST_VERSION else b"1404"
    return b"%b%b04" % (mark.removesuffix(ending), (UUID_MARK + uuid).hex().upper().encode())


def cluster_time(data: bytes) -> int:
    """The cluster time of a token, in any case of hex, whatever stands behind it."""
    found = _TIME(data)
    if found is None:
        raise BadToken("no cluster time (hex digit 0)", code=NO_TIME, position=0)
    return int(found[1], 16)


def invalidate_token(data: bytes) -> bytes:
    """``_data`` of the invalidate event behind an event; version 0 knows no difference."""
    at = next((at for head, at in _INDEX_AT.items() if data.startswith(head, _TIME_DIGITS)), 0)
    if not at:
        raise BadToken("not the token of an event", code=50795, position=_TIME_DIGITS)
    if at == _INDEX_AT[b"29"]:
        return data
    flag = at + 2 + 2 * max(0, int(data[at : at + 2], 16) - 0x2A)
    return b"%b6F%b" % (data[:flag], data[flag + 2 :])


def _check(
    version: int, uuid: bytes | None, identifier: bytes | None, fragment: int | None
) -> None:
    if version not in HEADS:
        raise BadToken(f"no version {version} of resume tokens", code=50795, position=0)
    if version < NEWEST_VERSION:
        if identifier is not None and uuid is None:
            raise BadToken("an event identifier without a UUID", code=50788, position=0)
        if fragment is not None:
            raise BadToken("a fragment number before version 2", code=7182504, position=0)
    elif identifier is None:
        raise BadToken("an event without an identifier", code=6189502, position=0)
