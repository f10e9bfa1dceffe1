"""Change streams from the live oplog of a replica set: the engine's live front door.

``open_oplog`` checks options and source and gives an ``OplogStream``. Work moves in
batches: what one read of the log gave, as events, and the token from which whoever
took them goes on. An error comes after the events before it. What is lost on the way
(a cursor, a member, an election) is found again behind the last entry; a stream whose
look-ups got no answer starts anew behind its last event, and the caller may go on.

Above every room but the command line; it only joins the readers to the stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bson.timestamp import Timestamp
from pymongo import MongoClient

from tailrace.engine.live_lookups import LiveLookups
from tailrace.engine.sharded import (
    ShardCredentials,
    Wanted,
    discovered,
    listed,
    named,
    open_cluster,
)
from tailrace.engine.source import (
    check_collection,
    greet,
    is_config_server,
    is_mongos,
    probe,
)
from tailrace.engine.stream import BATCH_BYTES, OplogStream, Token, as_token
from tailrace.engine.user_stages import UserStages
from tailrace.errors import SourceLost, TailraceError
from tailrace.event.event import Event
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.tail import Tail
from tailrace.query import Pipeline
from tailrace.stage.options import Starts, StreamOptions, parse_options
from tailrace.stage.scope import Scope
from tailrace.stage.shard import ShardStream
from tailrace.stage.user import with_pipeline
from tailrace.token import ResumeToken, cluster_time

AWAIT_MS = 1000
"""How long a batch is waited for, as the server does by default."""

Clients = MongoClient[Any] | Mapping[str, MongoClient[Any]] | Sequence[MongoClient[Any]]
"""Of a deployment, or of each shard of one, by its name or not."""


def open_oplog(
    client: Clients,
    namespace: str | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    pipeline: Sequence[Mapping[str, Any]] | None = None,
    let: Mapping[str, Any] | None = None,
    collation: Mapping[str, Any] | None = None,
    start_at_operation_time: Timestamp | None = None,
    resume_after: Mapping[str, Any] | None = None,
    start_after: Mapping[str, Any] | None = None,
    read_preference: Any = None,
    max_await_ms: int = AWAIT_MS,
    shard_credentials: Mapping[str, Any] | None = None,
    advance: bool = True,
) -> OplogStream:
    """The change stream of a deployment, made from its oplogs; from now on without a start.

    A replica set, or a sharded cluster: by its config server (or a mongos, unchecked), or
    by the clients of its shards, under the shards' names if they are given. The shards of
    a cluster that is found are read with the client's own options, as the user that
    ``shard_credentials`` names (``username``, ``password``, ``authSource``), the client's if
    it names none. Shards without writes are moved on by reads, which make them write a
    no-op, unless ``advance`` is off.

    What of ``pipeline`` (with the variables of ``let``, under ``collation``) is not evaluated
    here, a replica set's server evaluates in batches: ``explain_pipeline`` tells which.

    The client stays the caller's, and is read with its read preference unless another
    is given. Raises ``ServerError`` for options that the server refuses, and
    ``UnsupportedSource`` for what is no replica set.
    """
    starts = Starts(start_at_operation_time, resume_after, start_after)
    users = UserStages(pipeline, let, collation)
    wanted = Wanted(namespace, options, users, starts, max_await_ms, advance)
    credentials = ShardCredentials.parse(shard_credentials)
    if isinstance(client, (Mapping, Sequence)):
        shards = client if isinstance(client, Mapping) else named(client)
        return open_cluster(listed(shards, read_preference), wanted)
    deployment = Deployment(client, read_preference)
    said = greet(deployment)
    if is_mongos(said) or is_config_server(said):
        return open_cluster(discovered(client, said, read_preference, credentials), wanted)
    return _open_replica_set(deployment, wanted)


def _open_replica_set(deployment: Deployment, wanted: Wanted) -> ReplicaSetStream:
    source = probe(deployment)
    check_collection(deployment, Scope.parse(wanted.namespace))
    parsed = parse_options(
        wanted.options,
        wanted.namespace,
        source.version,
        starts=wanted.starts,
        parameters=source.parameters,
    )
    if not parsed.start:
        parsed = replace(parsed, start=source.applied + 1)
    stages = wanted.users.compiled(source.version, deployment, source.variables)
    return ReplicaSetStream(deployment, with_pipeline(parsed, stages), wanted.max_await_ms, stages)


class ReplicaSetStream(OplogStream):
    """The stream of one replica set."""

    def __init__(
        self,
        deployment: Deployment,
        options: StreamOptions,
        max_await_ms: int,
        pipeline: Pipeline | None = None,
    ) -> None:
        super().__init__()
        self._deployment = deployment
        self._pipeline = pipeline
        self._options = options
        self._tail = Tail(deployment, max_await_ms)
        self._error: TailraceError | None = None
        self._failed = False
        self._begin(options)

    def _begin(self, options: StreamOptions) -> None:
        lookups = LiveLookups(self._deployment, options.shape)
        self._stages = ShardStream(options, lookups, self._pipeline)
        self._running: Iterator[Event] | None = None
        self._opened = False

    @property
    def alive(self) -> bool:
        """Whether it was neither closed, nor ended, nor failed."""
        return not (self._deployment.closed or self._stages.ended or self._failed)

    @property
    def position(self) -> tuple[bytes, bytes]:
        """The token behind all that was handed out."""
        return self._stages.position

    def close(self) -> None:
        """Ask no more, and give the cursor back."""
        self._deployment.close()
        self._tail.close()

    def next_batch(
        self, *, max_await_ms: int | None = None, max_events: int | None = None
    ) -> tuple[list[bytes], Token]:
        """What one read of the log gave, or the rest of what it gave."""
        self._raise_what_waits()
        if not self.alive:
            return [], as_token(self.position)
        if max_await_ms is not None:
            self._tail.await_ms = max_await_ms
        events: list[bytes] = []
        try:
            self._fill(events, max_events)
        except TailraceError as error:
            self._error = error
            if isinstance(error, SourceLost):
                self._begin_again()
            if not events:
                self._raise_what_waits()
        if self._stages.ended:
            self._tail.close()
        return events, as_token(self.position)

    def _raise_what_waits(self) -> None:
        error = self._error
        if isinstance(error, SourceLost):
            self._error = None
        elif error is not None:
            self._failed = True
            self._tail.close()
        if error is not None:
            raise error

    def _fill(self, events: list[bytes], max_events: int | None) -> None:
        if self._running is None:
            if not self._opened:
                self._stages.open(self._tail.seek(self._options.start))
                self._opened = True
            self._running = self._stages.run(self._tail.read())
        size = 0
        for event in self._running:
            events.append(event.raw)
            size += len(event.raw)
            if size >= BATCH_BYTES or len(events) == max_events:
                return
        self._running = None

    def _begin_again(self) -> None:
        """Start behind what was handed out; what the stages had begun is gone."""
        if self._running is None:
            return
        data, type_bits = self._stages.position
        token = ResumeToken.parse({"_data": data.decode(), "_typeBits": type_bits})
        self._options = replace(
            self._options, start=token.cluster_time, client_token=token, started_after=True
        )
        self._begin(self._options)

    def lag(self) -> tuple[int, int]:
        """Seconds behind the log's end, and how long the log still has this place."""
        oldest, newest = self._tail.bounds()
        reached = cluster_time(self._stages.position[0]) >> 32
        return max(0, (newest >> 32) - reached), max(0, reached - (oldest >> 32))
