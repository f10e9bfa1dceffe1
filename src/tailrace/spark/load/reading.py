"""One range of a collection by a snapshot read: complete, and at one known time.

``min`` and ``max`` are bounds in the index, across all types; a query with ``$gte``
would see the values of one type only. The server forgets its history after some minutes:
a range that takes longer goes on behind its last document, at a later time. A collection
is followed by its UUID, so that a rename in the middle of a load does not lose its rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bson.codec_options import CodecOptions
from bson.max_key import MaxKey
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from pymongo.errors import OperationFailure, PyMongoError

from tailrace.oplog.deployment import Deployment, converted, is_passing
from tailrace.raw import document, element, spans
from tailrace.spark.load.plan import Client, namespace_of

HISTORY_GONE = frozenset((239, 246))
"""SnapshotTooOld and SnapshotUnavailable: the read goes on at a later time."""
MOVED = frozenset((26, 73, 175))
"""What a read ends with when its collection is renamed or dropped under it."""
RAW: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)
MOST_ATTEMPTS = 100


class Read(NamedTuple):
    """A document and the time at which it was read."""

    document: bytes
    time: int


class RangeReader:
    """Reads ranges of the collections of one deployment."""

    def __init__(self, client: Client, batch_size: int | None = None) -> None:
        self._client = client
        self._deployment = Deployment(client)
        self._batch_size = batch_size

    def read(self, namespace: str, uuid: str, low: bytes | None, high: bytes | None) -> list[Read]:
        """Every document from ``low`` on and below ``high``; nothing of a dropped collection."""
        found: list[Read] = []
        grant = f"the role read on {namespace.partition('.')[0]}"
        for _ in range(MOST_ATTEMPTS):
            where = namespace_of(self._client, uuid, namespace)
            if where is None:
                return []
            begin, over = len(found), False
            try:
                found.extend(self._snapshot(where, found[-1:], low, high))
                over = True
            except PyMongoError as error:
                self._may_go_on(error, grant)
            if namespace_of(self._client, uuid, where) != where:
                del found[begin:]
            elif over:
                return found
        raise converted(OperationFailure("the range does not come to an end", 239), grant)

    def at(
        self, namespace: str, time: int, low: bytes | None = None, high: bytes | None = None
    ) -> Iterator[bytes]:
        """The documents of a range at one time, or the error of a history that is gone."""
        return self._range(namespace, time, low, high)

    def now(self) -> int:
        """The newest time that a majority has."""
        said = self._client.admin.command("hello")
        stamp: Timestamp = said["lastWrite"]["majorityOpTime"]["ts"]
        return stamp.time << 32 | stamp.inc

    def _snapshot(
        self, namespace: str, last: list[Read], low: bytes | None, high: bytes | None
    ) -> Iterator[Read]:
        """What is behind the last document that came, at the newest time."""
        time = self.now()
        known = key_of(last[0].document) if last else None
        for each in self._range(namespace, time, known or low, high):
            if known is None or key_of(each) != known:
                yield Read(each, time)

    def _range(
        self, namespace: str, time: int, low: bytes | None, high: bytes | None
    ) -> Iterator[bytes]:
        bounds: dict[str, Any] = {}
        if low is not None:
            bounds["min"] = RawBSONDocument(low)
        if high is not None:
            bounds["max"] = RawBSONDocument(high)
        last = b""
        for last in self._find(namespace, time, {"hint": {"_id": 1}, "sort": {"_id": 1}, **bounds}):
            yield last
        if low is not None and high is None:
            # An index range that is open above stops below MaxKey.
            for greatest in self._find(namespace, time, {"filter": {"_id": MaxKey()}}):
                if greatest != last:
                    yield greatest

    def _find(self, namespace: str, time: int, fields: dict[str, Any]) -> Iterator[bytes]:
        database, _, name = namespace.partition(".")
        at = Timestamp(time >> 32, time & 0xFFFF_FFFF)
        command = {
            "find": name,
            **fields,
            "readConcern": {"level": "snapshot", "atClusterTime": at},
        }
        found: Any = self._client.get_database(database, RAW).cursor_command(
            command, codec_options=RAW
        )
        if self._batch_size:
            found.batch_size(self._batch_size)
        for each in found:
            yield bytes(each.raw)

    def _may_go_on(self, error: PyMongoError, grant: str) -> None:
        if isinstance(error, OperationFailure) and error.code in (*HISTORY_GONE, *MOVED):
            return
        if not is_passing(error):
            raise converted(error, grant) from error
        self._deployment.pause()


def key_of(raw: bytes) -> bytes:
    """``{_id: value}`` of a document."""
    kind, start, end = spans(raw)[b"_id"]
    return document(element(b"_id", kind, raw[start:end]))
