"""A machine's commands, answered by our own engine instead of the server's stage.

The aggregate opens the engine's stream over the oplog, each getMore takes a batch from
it, killCursors closes it. What the engine refuses is said as the server would say it,
with PyMongo's exceptions, so that whoever catches those need not know who answered.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from bson.int64 import Int64
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure

from tailrace.driver.document import raw_document
from tailrace.driver.pymongo_commands import failure
from tailrace.driver.requests import Answer, GetMore, Kill, Open, Reply
from tailrace.engine import OplogStream, ShardStatus, open_oplog
from tailrace.errors import OptionError, ServerError, SourceLost

AWAIT_MS = 1000
"""How long a batch is waited for when nobody says, as on the server."""
AT_ONCE_MS = 1
"""How long the first batch is: an aggregate does not wait."""
ENGINE_OPTIONS = ("shards", "shard_credentials", "advance")
"""What ``open_oplog`` takes besides what a stream of the server's takes."""
NO_COLLECTION = "$cmd.aggregate"
MS_PER_S = 1000


class OplogTransport:
    """Runs a stream's commands on the engine, over a client that stays its owner's."""

    def __init__(
        self,
        client: MongoClient[Any],
        read_preference: Any,
        engine_options: Mapping[str, Any] | None = None,
    ) -> None:
        given = dict(engine_options or {})
        unknown = next((name for name in given if name not in ENGINE_OPTIONS), None)
        if unknown is not None:
            raise OptionError(
                f"engine_options: no option {unknown}; there are {', '.join(ENGINE_OPTIONS)}",
                option="engine_options",
            )
        self._source = given.pop("shards", None) or client
        self._engine_options = given
        self._read_preference = read_preference
        self._stream: OplogStream | None = None
        self._namespace = ""
        self._numbers = itertools.count(1)
        self._number = 0

    def perform(self, request: Open | GetMore | Kill) -> Answer:
        """Answer a request as a server would."""
        try:
            if isinstance(request, Open):
                return self._open(request)
            if isinstance(request, GetMore):
                return self._next(request)
        except ServerError as error:
            return failure(_as_pymongo(error), None)
        except SourceLost as error:
            lost = AutoReconnect(str(error))
            lost.__cause__ = error
            return failure(lost, None)
        self.end()
        return None

    def lag(self) -> tuple[int, int] | None:
        """Seconds behind the log's end, and until the log forgets this place."""
        return None if self._stream is None else self._stream.lag()

    def shards(self) -> list[ShardStatus]:
        """How each shard's reader is doing."""
        return [] if self._stream is None else self._stream.shards()

    def end(self) -> None:
        """Close the engine's stream."""
        if self._stream is not None:
            self._stream.close()

    def _open(self, request: Open) -> Reply:
        command = request.command
        (stage, *pipeline) = command["pipeline"]
        collection = command["aggregate"]
        whole = not isinstance(collection, str)
        self.end()
        self._stream = open_oplog(
            self._source,
            request.database if whole else f"{request.database}.{collection}",
            options=stage["$changeStream"],
            pipeline=pipeline,
            read_preference=self._read_preference,
            **self._engine_options,
        )
        self._namespace = f"{request.database}.{NO_COLLECTION if whole else collection}"
        self._number = next(self._numbers)
        return self._batch("firstBatch", AT_ONCE_MS, command["cursor"].get("batchSize"))

    def _next(self, request: GetMore) -> Reply:
        await_ms = int(request.command.get("maxTimeMS", AWAIT_MS))
        if request.timeout_s is not None:
            await_ms = max(AT_ONCE_MS, min(await_ms, int(request.timeout_s * MS_PER_S)))
        return self._batch("nextBatch", await_ms, request.command.get("batchSize"))

    def _batch(self, name: str, await_ms: int, at_most: int | None) -> Reply:
        stream = self._stream
        if stream is None:
            raise SourceLost("the stream is not open")
        # An event at least: "no limit" is what 0 means to a getMore.
        events, token = stream.next_batch(max_await_ms=await_ms, max_events=at_most or None)
        cursor = {
            "id": Int64(self._number if stream.alive else 0),
            "ns": self._namespace,
            name: _raw(events),
            "postBatchResumeToken": token,
        }
        return Reply({"cursor": cursor})


def _raw(events: Sequence[bytes]) -> Sequence[Mapping[str, Any]]:
    return [raw_document(event) for event in events]


def _as_pymongo(error: ServerError) -> OperationFailure:
    """The exception that PyMongo raises for this error of a server."""
    details = {
        "ok": 0.0,
        "errmsg": error.message,
        "code": error.code,
        "codeName": error.code_name,
        "errorLabels": list(error.fields.get("labels", ())),
    }
    said = OperationFailure(str(error), error.code, details)
    said.__cause__ = error
    return said
