"""The live oplog: raw entries of a replica set, in order, each exactly once.

Entries come as the server sent them, a batch of a tailable cursor at a time, decoded
by nobody. They are read with majority read concern: what a rollback may still undo is
not seen. When the cursor is lost (an election, a restart, an idle hour) reading goes
on behind the last entry, on any member: the new cursor must begin with that very
entry, or else the log has lost its place (ChangeStreamHistoryLost).

Facts: facts/server-semantics, section 4.4. Knows no event.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from pymongo.cursor import CursorType, RawBatchCursor
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Primary

from tailrace.errors import ServerError
from tailrace.oplog.deployment import Deployment, converted, is_passing
from tailrace.raw import spans

HISTORY_LOST = 286
GRANT = "the role read on the database local"
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
OPLOG = "oplog.rs"
_IN_SHORT = {
    "_id": 0,
    "oldest": {
        "ts": "$ts",
        "op": "$op",
        "ns": "$ns",
        "o": {"$cond": [{"$eq": ["$op", "n"]}, "$o", {}]},
    },
}
"""Of the oldest entry no more than says whether the log began with it."""


class Tail:
    """One reader of a replica set's oplog, from a time on."""

    def __init__(self, deployment: Deployment, await_ms: int) -> None:
        self.await_ms = await_ms
        """How long a read waits for entries when there are none."""
        self._deployment = deployment
        self._oplog = deployment.client.get_database("local").get_collection(
            OPLOG,
            codec_options=RAW,
            read_concern=ReadConcern("majority"),
            read_preference=deployment.read_preference,
        )
        self._cursor: RawBatchCursor[Any] | None = None
        self._cursor_await_ms = 0
        self._anchor = 0
        self._anchor_is_new = False
        self._last = b""
        self._failing_since: float | None = None

    def seek(self, start: int) -> bytes:
        """Go to the first entry at or after a time; called before the first ``read``.

        Gives the log's oldest entry, in short, of a member that has all from there on.
        """
        self._drop()
        self._last = b""
        while True:
            oldest, first = self._deployment.ask(lambda: self._bounds(start), GRANT)
            if first is not None:
                self._anchor, self._anchor_is_new = first, True
                return oldest
            newest = self._deployment.ask(self._newest, GRANT)
            if newest < start:
                self._anchor, self._anchor_is_new = newest, False
                return oldest

    def read(self) -> Iterator[bytes]:
        """The next entries; none when none came within the wait, or no server answered.

        Take all of them before reading on. No answer for as long as the client looks for
        a server is ``SourceLost``: the next read goes on at the same place.
        """
        try:
            batch = self._next()
        except PyMongoError as error:
            self._drop()
            if not is_passing(error) or self._out_of_patience():
                raise converted(error, GRANT) from error
            self._deployment.pause()
            return iter(())
        self._failing_since = None
        return self._entries(batch)

    def close(self) -> None:
        """Give the cursor back; also from another thread, whose read then ends."""
        self._drop()

    def _next(self) -> bytes:
        cursor = self._cursor
        if cursor is None or self._abandoned(cursor) or self.await_ms != self._cursor_await_ms:
            cursor = self._open()
        try:
            return bytes(cursor.next())
        except StopIteration:
            if not cursor.alive:
                # PyMongo says nothing of a cursor that timed out or fell off the log.
                self._drop()
                self._deployment.pause()
            return b""

    def _open(self) -> RawBatchCursor[Any]:
        self._drop()
        if self._last:
            self._anchor, self._anchor_is_new = _time_of(self._last), False
        since = Timestamp(self._anchor >> 32, self._anchor & 0xFFFF_FFFF)
        cursor: RawBatchCursor[Any] = self._oplog.find_raw_batches(
            {"ts": {"$gte": since}}, cursor_type=CursorType.TAILABLE_AWAIT
        )
        cursor.max_await_time_ms(self.await_ms)
        self._cursor, self._cursor_await_ms = cursor, self.await_ms
        self._last = b""
        return cursor

    def _entries(self, batch: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(batch):
            end = at + int.from_bytes(batch[at : at + 4], "little")
            entry, at = batch[at:end], end
            if not self._last and not self._is_new(entry):
                self._last = entry
                continue
            self._last = entry
            yield entry

    def _is_new(self, first: bytes) -> bool:
        """Whether a cursor's first entry is to be handed out; it must be the anchor."""
        if _time_of(first) == self._anchor:
            return self._anchor_is_new
        raise ServerError(
            "Resume of change stream was not possible, as the resume point may no longer be in "
            "the oplog.",
            code=HISTORY_LOST,
            labels=("NonResumableChangeStreamError",),
            start=self._anchor,
        )

    def _abandoned(self, cursor: RawBatchCursor[Any]) -> bool:
        """Whether the cursor's server is gone, or is no longer the one to read from."""
        address = cursor.address
        if address is None:
            return False
        client = self._deployment.client
        server = client.topology_description.server_descriptions().get(address)
        if server is None or not server.is_server_type_known:
            return True
        if not isinstance(self._deployment.read_preference, Primary):
            return False
        primary = client.primary
        return primary is not None and primary != address

    def _bounds(self, start: int) -> tuple[bytes, int | None]:
        """The oldest entry, and the time of the first at or after a time, of one member."""
        since = Timestamp(start >> 32, start & 0xFFFF_FFFF)
        first = [{"$match": {"ts": {"$gte": since}}}, {"$limit": 1}, {"$project": {"ts": 1}}]
        pipeline: list[dict[str, Any]] = [
            {"$limit": 1},
            {"$project": _IN_SHORT},
            {"$lookup": {"from": OPLOG, "pipeline": first, "as": "first"}},
        ]
        answer = bytes(next(iter(self._oplog.aggregate(pipeline))).raw)
        fields = spans(answer)
        _, at, end = fields[b"oldest"]
        found = spans(answer, fields[b"first"][1]).get(b"0")
        return answer[at:end], None if found is None else _time_of(answer[found[1] : found[2]])

    def _newest(self) -> int:
        newest = self._oplog.find({}, {"ts": 1}).sort("$natural", -1).limit(1)
        return _time_of(bytes(next(iter(newest)).raw))

    def _drop(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            with contextlib.suppress(PyMongoError):
                cursor.close()

    def _out_of_patience(self) -> bool:
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since <= self._deployment.patience_s:
            return False
        self._failing_since = None
        return True


def _time_of(entry: bytes) -> int:
    _, start, end = spans(entry)[b"ts"]
    return int.from_bytes(entry[start:end], "little")
