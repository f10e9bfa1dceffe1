"""The server's own change stream, as raw bytes: what the engine is compared with.

``server_stream`` runs ``$changeStream`` through plain commands, batch by batch, until
the server says that there is nothing more: events, the last post-batch token, and the
error that ended it. ``engine_stream`` reads the same through the engine's live oplog.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import bson
from bson.codec_options import CodecOptions
from bson.int64 import Int64
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import OperationFailure

import tailrace

RAW = CodecOptions(document_class=RawBSONDocument)
DEADLINE_S = 60.0
AWAIT_MS = 20

Client = MongoClient[dict[str, Any]]


@dataclass
class Seen:
    """What a stream showed, and how it ended."""

    events: list[bytes] = field(default_factory=list)
    token: dict[str, Any] = field(default_factory=dict)
    """The post-batch token behind all of it."""
    tokens: list[dict[str, Any]] = field(default_factory=list)
    error: tuple[int, str] | None = None
    ended: bool = False

    def operations(self) -> list[str]:
        return [bson.decode(event)["operationType"] for event in self.events]


def now(client: Client) -> bson.Timestamp:
    """The time right behind everything that was written so far."""
    applied = client.admin.command("hello")["lastWrite"]["opTime"]["ts"]
    return bson.Timestamp(applied.time, applied.inc + 1)


def settle(client: Client) -> bson.Timestamp:
    """Have all that was written committed by a majority; the time of the last entry."""
    client.admin.command("appendOplogNote", 1, data={"settled": 1}, writeConcern={"w": "majority"})
    said = client.admin.command("hello")["lastWrite"]["majorityOpTime"]["ts"]
    assert isinstance(said, bson.Timestamp)
    return said


def server_stream(
    client: Client,
    namespace: str | None,
    options: Mapping[str, Any],
    *,
    until: bson.Timestamp,
    batch_size: int = 1000,
    pipeline: Sequence[Mapping[str, Any]] = (),
    let: Mapping[str, Any] | None = None,
) -> Seen:
    """The server's stream up to a time that the log has reached."""
    database, _, collection = (namespace or "admin").partition(".")
    stage = dict(options) if namespace else {"allChangesForCluster": True, **options}
    seen = Seen()
    deadline = time.monotonic() + DEADLINE_S
    source = client[database]
    command: dict[str, Any] = {
        "aggregate": collection or 1,
        "pipeline": [{"$changeStream": stage}, *pipeline],
        "cursor": {"batchSize": batch_size},
        "readConcern": {"level": "majority"},
    }
    if let is not None:
        command["let"] = let
    batch = "firstBatch"
    while True:
        assert time.monotonic() < deadline, "the server's stream did not come to its end"
        try:
            cursor = bson.decode(bytes(source.command(command, codec_options=RAW).raw), RAW)[
                "cursor"
            ]
        except OperationFailure as error:
            seen.error = (error.code or 0, (error.details or {}).get("codeName", ""))
            return seen
        seen.events += [bytes(event.raw) for event in cursor[batch]]
        seen.token = bson.decode(bytes(cursor["postBatchResumeToken"].raw))
        seen.tokens.append(seen.token)
        if not cursor["id"]:
            seen.ended = True
            return seen
        if reached(seen.token, until):
            source.command(
                {"killCursors": collection or "$cmd.aggregate", "cursors": [cursor["id"]]}
            )
            return seen
        command = {
            "getMore": Int64(cursor["id"]),
            "collection": collection or "$cmd.aggregate",
            "batchSize": batch_size,
            "maxTimeMS": AWAIT_MS,
        }
        batch = "nextBatch"


def engine_stream(
    client: Client,
    namespace: str | None,
    options: Mapping[str, Any],
    *,
    until: bson.Timestamp,
    max_events: int | None = None,
    **arguments: Any,
) -> Seen:
    """The engine's stream up to a time that the log has reached."""
    seen = Seen()
    deadline = time.monotonic() + DEADLINE_S
    try:
        with tailrace.open_oplog(
            client, namespace, options=options, max_await_ms=AWAIT_MS, **arguments
        ) as stream:
            while stream.alive:
                assert time.monotonic() < deadline, "the engine's stream did not come to its end"
                events, seen.token = stream.next_batch(max_events=max_events)
                seen.events += events
                seen.tokens.append(seen.token)
                if stream.alive and reached(seen.token, until):
                    return seen
            seen.ended = True
    except tailrace.ServerError as error:
        seen.error = (error.code, error.code_name)
    return seen


def time_of(token: Mapping[str, Any]) -> bson.Timestamp:
    """The cluster time of a token."""
    raw = int(token["_data"][2:18], 16)
    return bson.Timestamp(raw >> 32, raw & 0xFFFF_FFFF)


def reached(token: Mapping[str, Any], until: bson.Timestamp) -> bool:
    """Whether a post-batch token says that everything up to a time was seen."""
    return time_of(token) >= until


def differences(ours: list[bytes], theirs: list[bytes]) -> str:
    """The first event that differs, in words; empty when all are the same bytes."""
    for at in range(max(len(ours), len(theirs))):
        mine = ours[at] if at < len(ours) else None
        other = theirs[at] if at < len(theirs) else None
        if mine != other:
            return f"event {at}:\nours   {in_words(mine)}\ntheirs {in_words(other)}"
    return ""


def in_words(raw: bytes | None) -> str:
    return "nothing" if raw is None else repr(bson.decode(raw, AS_STORED))


AS_STORED = CodecOptions(datetime_conversion=bson.codec_options.DatetimeConversion.DATETIME_MS)
