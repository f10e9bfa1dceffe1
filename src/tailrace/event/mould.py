"""The constant bytes of all events of one kind, on one collection.

Most events differ only in their documents and times. A ``Mould`` holds the rest,
made once per operation type, namespace and UUID: ``operationType``, ``ns``,
``collectionUUID`` and the constant part of the token.
"""

from __future__ import annotations

from tailrace.event.shape import Shape
from tailrace.raw import document, element, string_value
from tailrace.raw.elements import BINARY, OBJECT, STRING
from tailrace.token import TokenMould

MAX_MOULDS = 20_000
"""Past this many (a deployment of very many collections) the cache starts anew."""


class Mould:
    """What does not change between the events of one kind on one collection."""

    __slots__ = ("ns_and_key", "operation_and_time", "token", "uuid_element")

    def __init__(self, shape: Shape, version: int, kind: bytes, name: bytes, uuid: bytes | None):
        self.operation_and_time = b"\x02operationType\x00%b\x11clusterTime\x00" % string_value(kind)
        self.ns_and_key = ns_element(name) + b"\x03documentKey\x00"
        self.uuid_element = uuid_element(uuid) if shape.expanded else b""
        self.token = TokenMould(version, uuid, kind)


class Moulds:
    """All moulds of one stream, for one token version."""

    def __init__(self, shape: Shape, version: int | None = None) -> None:
        self.shape = shape
        self.wall_time = shape.wall_time
        self.version = shape.token_version if version is None else version
        self._made: dict[tuple[bytes, bytes, bytes | None], Mould] = {}

    def of(self, kind: bytes, namespace: bytes, uuid: bytes | None) -> Mould:
        """The mould for an operation type on a namespace."""
        key = (kind, namespace, uuid)
        mould = self._made.get(key)
        if mould is None:
            if len(self._made) >= MAX_MOULDS:
                self._made.clear()
            mould = self._made[key] = Mould(self.shape, self.version, kind, namespace, uuid)
        return mould


def ns_document(namespace: bytes) -> bytes:
    """``{db, coll}``, or ``{db}`` for a namespace without a dot."""
    database, dot, collection = namespace.partition(b".")
    parts = [element(b"db", STRING, string_value(database))]
    if dot:
        parts.append(element(b"coll", STRING, string_value(collection)))
    return document(*parts)


def ns_element(namespace: bytes) -> bytes:
    """The ``ns`` element of an event."""
    return element(b"ns", OBJECT, ns_document(namespace))


def uuid_element(uuid: bytes | None) -> bytes:
    """The ``collectionUUID`` element, nothing where there is none."""
    if uuid is None:
        return b""
    return element(b"collectionUUID", BINARY, b"\x10\x00\x00\x00\x04" + uuid)
