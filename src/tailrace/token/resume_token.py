"""A resume token as a value: taken apart, put together, compared, explained.

``ResumeToken`` holds the elements of a token and its bytes in the form in which the
server writes them (upper-case hex, final 04), whatever form it came in. Tokens order
as their streams do: by the bytes of ``_data``. Every refusal has the server's code.

Spec: facts/server-semantics, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import total_ordering
from typing import Any

import bson
from bson.errors import BSONError
from bson.timestamp import Timestamp

from tailrace.errors import BadToken
from tailrace.raw import Span, spans, text_of
from tailrace.raw.elements import BINARY, BOOL, INT32, INT64, NULL, OBJECT, STRING, TIMESTAMP
from tailrace.token.decoder import Value, decode
from tailrace.token.layout import (
    EVENT,
    HIGH_WATER_MARK,
    MARK_WITH_MORE,
    NEWEST_VERSION,
    event_token,
    high_water_mark,
)

BAD_HEX = 9
NOT_A_TOKEN, BAD_TYPE_BITS, EMPTY, TRAILING = 40647, 40648, 40649, 40646
NO_VERSION, VERSION_TYPE, VERSION_UNKNOWN = 50796, 50854, 50795
NO_KIND, KIND_TYPE, KIND_UNKNOWN = 51055, 51056, 51057
NO_INDEX, INDEX_TYPE, INDEX_NEGATIVE = 50793, 50855, 50794
NO_FLAG, FLAG_TYPE = 50872, 50870
NO_UUID, BAD_UUID = 6189500, 207
NO_IDENTIFIER, IDENTIFIER_TYPE, MARK_WITH_IDENTIFIER = 6189501, 6189503, 6189504
BAD_FRAGMENT = 7182501
_UUID_HEAD = b"\x10\x00\x00\x00\x04"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class ResumeToken:
    """One place in a stream."""

    cluster_time: int
    """Seconds << 32 | increment."""
    version: int
    is_high_water_mark: bool = False
    """Whether it names a time and not an event."""
    index: int = 0
    from_invalidate: bool = False
    uuid: bytes | None = None
    identifier: bytes | None = None
    """The event identifier, raw BSON."""
    fragment: int | None = None
    data: bytes = field(init=False)
    """``_data``, upper-case hex."""
    type_bits: bytes = field(init=False)

    def __post_init__(self) -> None:
        if self.is_high_water_mark:
            if self.index or self.from_invalidate or self.identifier or self.fragment is not None:
                raise _refused("a high-water mark with parts of an event", MARK_WITH_MORE)
            data, bits = high_water_mark(self.cluster_time, self.version, self.uuid), b""
        else:
            data, bits = event_token(
                self.version,
                self.cluster_time,
                self.index,
                self.uuid,
                self.identifier,
                from_invalidate=self.from_invalidate,
                fragment=self.fragment,
            )
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "type_bits", bits)

    @classmethod
    def at(cls, time: int, version: int = NEWEST_VERSION) -> ResumeToken:
        """The high-water mark of a time: a stream from it shows the events of that time too."""
        return cls(time, version, is_high_water_mark=True)

    @classmethod
    def parse(cls, token: Mapping[str, Any] | bytes | str) -> ResumeToken:
        """A token from its document (raw or decoded), or from its hex string."""
        if isinstance(token, str):
            return _parse(token.encode(errors="replace"), b"")
        return _parse(*_form(_raw(token)))

    @staticmethod
    def check_form(raw: bytes) -> None:
        """The error of a document that has not even the form of a token."""
        _form(raw)

    @property
    def timestamp(self) -> Timestamp:
        """The cluster time as BSON's own type."""
        return Timestamp(self.cluster_time >> 32, self.cluster_time & 0xFFFF_FFFF)

    @property
    def document(self) -> dict[str, Any]:
        """The token as a change stream's ``_id`` has it."""
        document: dict[str, Any] = {"_data": self.data.decode()}
        if self.type_bits:
            document["_typeBits"] = self.type_bits
        return document

    @property
    def without_fragment(self) -> bytes:
        """``_data`` of the whole event, of which the token may name a part."""
        return self.data if self.fragment is None else replace(self, fragment=None).data

    @property
    def is_end_of_transaction(self) -> bool:
        """Whether it is the token of an ``endOfTransaction`` event, which has no collection."""
        if self.identifier is None:
            return False
        span = spans(self.identifier).get(b"operationType")
        return bool(span) and _text(self.identifier, span) == b"endOfTransaction"

    def __eq__(self, other: object) -> bool:
        return self.data == other.data if isinstance(other, ResumeToken) else NotImplemented

    def __lt__(self, other: ResumeToken) -> bool:
        return self.data < other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __str__(self) -> str:
        return self.data.decode()


def _text(raw: bytes, span: Span | None) -> bytes:
    return text_of(raw, span) if span and span[0] == STRING else b""


def _raw(token: object) -> bytes:
    if isinstance(token, bytes):
        return token
    if not isinstance(token, Mapping):
        raise _refused("a resume token must be an object", NOT_A_TOKEN)
    try:
        return bson.encode(token)
    except (BSONError, TypeError, OverflowError):
        raise _refused("a resume token must be an object of BSON values", NOT_A_TOKEN) from None


def _form(raw: bytes) -> tuple[bytes, bytes]:
    """``_data`` and type bits of a token's document; other fields do not matter."""
    fields = spans(raw)
    data, bits = fields.get(b"_data"), fields.get(b"_typeBits")
    if data is None or data[0] != STRING:
        raise _refused("a resume token needs a string named _data", NOT_A_TOKEN)
    if bits is None:
        return text_of(raw, data), b""
    if bits[0] != BINARY or raw[bits[1] + 4]:
        raise _refused("_typeBits must be binary data of subtype 0", BAD_TYPE_BITS)
    return text_of(raw, data), raw[bits[1] + 5 : bits[2]]


def _parse(data: bytes, type_bits: bytes) -> ResumeToken:
    key = _unhexed(data)
    if not key:
        raise _refused("the resume token is empty", EMPTY)
    return _Elements(decode(key, type_bits), 2 * len(key)).token()


def _unhexed(data: bytes) -> bytes:
    for at, digit in enumerate(data):
        if digit not in b"0123456789abcdefABCDEF":
            raise BadToken(f"not a hex digit (hex digit {at})", code=BAD_HEX, position=at)
    if len(data) % 2:
        at = len(data) - 1
        raise BadToken(f"half a byte at the end (hex digit {at})", code=BAD_HEX, position=at)
    return bytes.fromhex(data.decode())


class _Elements:
    """The elements of a token, taken one after the other as the server does."""

    def __init__(self, values: list[tuple[int, Value]], end: int) -> None:
        self._values = values[::-1]
        self._end = end

    def token(self) -> ResumeToken:
        time = self._take("cluster time", EMPTY, EMPTY, (TIMESTAMP,))
        version = self._integer("version", NO_VERSION, VERSION_TYPE)
        if not 0 <= version <= NEWEST_VERSION:
            raise self._wrong(f"no version {version} of resume tokens", VERSION_UNKNOWN)
        kind = self._integer("token type", NO_KIND, KIND_TYPE) if version else EVENT
        if kind not in (HIGH_WATER_MARK, EVENT):
            raise self._wrong(f"no token type {kind}", KIND_UNKNOWN)
        index = self._integer("operation index", NO_INDEX, INDEX_TYPE)
        if index < 0:
            raise self._wrong("a negative operation index", INDEX_NEGATIVE)
        flag = version and self._take("invalidate flag", NO_FLAG, FLAG_TYPE, (BOOL,)) != b"\x00"
        uuid = self._uuid(version)
        mark = kind == HIGH_WATER_MARK
        identifier = self._identifier(version, mark)
        fragment = self._fragment(version) if identifier is not None else None
        if self._values:
            raise self._wrong("more elements than a token has", TRAILING)
        cluster_time = int.from_bytes(time, "little")
        if mark or (not version and uuid is None):
            return ResumeToken(cluster_time, version, is_high_water_mark=True, uuid=uuid)
        return ResumeToken(
            cluster_time,
            version,
            index=index,
            from_invalidate=bool(flag),
            uuid=uuid,
            identifier=identifier,
            fragment=fragment,
        )

    def _uuid(self, version: int) -> bytes | None:
        if not self._values:
            if version >= NEWEST_VERSION:
                raise self._wrong("no UUID, and no null in its place", NO_UUID)
            return None
        _, (kind, raw) = self._values[-1]
        if kind == NULL and version >= NEWEST_VERSION:
            self._values.pop()
            return None
        if kind != BINARY or raw[:5] != _UUID_HEAD:
            raise self._wrong("the collection's UUID is no UUID", BAD_UUID)
        self._values.pop()
        return raw[5:]

    def _identifier(self, version: int, mark: bool) -> bytes | None:
        if not self._values:
            if version >= NEWEST_VERSION and not mark:
                raise self._wrong("an event without an identifier", NO_IDENTIFIER)
            return None
        if mark:
            raise self._wrong("a high-water mark with an event identifier", MARK_WITH_IDENTIFIER)
        return self._take("event identifier", NO_IDENTIFIER, IDENTIFIER_TYPE, (OBJECT,))

    def _fragment(self, version: int) -> int | None:
        if not self._values or version < NEWEST_VERSION:
            return None
        fragment = self._integer("fragment number", BAD_FRAGMENT, BAD_FRAGMENT)
        if fragment < 0:
            raise self._wrong("a negative fragment number", BAD_FRAGMENT)
        return fragment

    def _integer(self, what: str, missing: int, mistyped: int) -> int:
        raw = self._take(what, missing, mistyped, (INT32, INT64))
        return int.from_bytes(raw, "little", signed=True)

    def _take(self, what: str, missing: int, mistyped: int, kinds: tuple[int, ...]) -> bytes:
        if not self._values:
            raise self._wrong(f"the token ends before its {what}", missing)
        _, (kind, raw) = self._values[-1]
        if kind not in kinds:
            raise self._wrong(f"the {what} is of another type", mistyped)
        self._values.pop()
        return raw

    def _wrong(self, message: str, code: int) -> BadToken:
        position = 2 * self._values[-1][0] if self._values else self._end
        return BadToken(f"{message} (hex digit {position})", code=code, position=position)


def _refused(message: str, code: int) -> BadToken:
    return BadToken(message, code=code, position=0)
