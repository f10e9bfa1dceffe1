"""One stream over all shards of a live cluster, as a mongos would make it.

A reader for each shard, in parallel; the router merges what they bring, and what only
the whole stream can decide comes behind it. The config servers' own log is the guide: it
says which shards come, and from when on they are read, and which go. Shards that have
nothing to say are moved on by reads, unless that was not wanted.

Reference: changestream-internals, sections 3 and 4. Rules: facts/sharded, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import bson

from tailrace.engine.sharded.advance import Advancer
from tailrace.engine.sharded.catalog import Catalog
from tailrace.engine.sharded.clock import ClusterClock
from tailrace.engine.sharded.inflow import SHARD_BYTES, Inflow
from tailrace.engine.sharded.lookups import OwnerLookups
from tailrace.engine.sharded.reader import ShardReader
from tailrace.engine.sharded.topology import CONFIG_GRANT, Topology
from tailrace.engine.stream import BATCH_BYTES, OplogStream, ShardStatus, Token, as_token
from tailrace.errors import ServerError, SourceLost, TailraceError, UnsupportedSource
from tailrace.event.event import Event
from tailrace.event.noops import new_shard_of
from tailrace.oplog.deployment import Deployment
from tailrace.router import Place
from tailrace.stage.merged import MergedStream
from tailrace.stage.options import Caller, StreamOptions, parse_options
from tailrace.stage.shard import ShardStream
from tailrace.stage.user import Pipeline
from tailrace.token import cluster_time

HISTORY_LOST = 286
GUIDE = "config.shards"
"""What the guide reads, and its name in the merge: no shard can be called so."""
JOIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Reading:
    """How the shards are read."""

    max_await_ms: int
    advance: bool = True
    shard_bytes: int = SHARD_BYTES
    guide_start: int = 0


class ShardedStream(OplogStream):
    """The stream of a sharded cluster."""

    def __init__(
        self,
        topology: Topology,
        options: StreamOptions,
        reading: Reading,
        clock: ClusterClock,
        pipeline: Pipeline | None = None,
    ) -> None:
        super().__init__()
        self._topology = topology
        self._options = options
        self._reading = reading
        self._clock = clock
        self._whole = MergedStream(options, pipeline)
        self._running: Iterator[Event] | None = None
        self._last: Place | None = None
        self._failed = self._closed = False
        self._readers: dict[str, ShardReader] = {}
        self._inflow = Inflow(ShardStream(options).position, reading.shard_bytes)
        self._advancer = Advancer(self._inflow, clock) if reading.advance else None
        for name, deployment in topology.shards.items():
            self._read(name, deployment, options)
        if topology.config is not None:
            self._read_guide(topology.config)
        if self._advancer is not None:
            self._advancer.start()

    def _read(self, name: str, deployment: Deployment, options: StreamOptions) -> None:
        self._start(
            ShardReader(
                name,
                deployment,
                options,
                lambda: OwnerLookups(
                    deployment,
                    options.shape,
                    self._topology.config,
                    self._topology.shards,
                    self._clock,
                ),
                self._inflow,
                self._reading.max_await_ms,
                self._topology.user,
            )
        )

    def _read_guide(self, config: Deployment) -> None:
        version = self._options.shape.version
        options = parse_options(
            {"allowToRunOnConfigDB": True}, GUIDE, version, caller=Caller(mongos=True)
        )
        shape = replace(options.shape, guides=True)
        guided = replace(options, shape=shape, start=self._reading.guide_start)
        own = Deployment(config.client)
        self._start(
            ShardReader(
                GUIDE,
                own,
                guided,
                lambda: OwnerLookups(own, options.shape, None, {}, self._clock),
                self._inflow,
                self._reading.max_await_ms,
            ),
            guide=True,
        )

    def _start(self, reader: ShardReader, *, guide: bool = False) -> None:
        self._readers[reader.name] = reader
        if self._advancer is not None:
            self._advancer.add(reader.name, reader.deployment.client)
        reader.start(guide=guide)

    @property
    def alive(self) -> bool:
        """Whether it was neither closed, nor ended, nor failed."""
        return not (self._closed or self._whole.ended or self._failed)

    @property
    def position(self) -> Place:
        """The token behind all that was handed out."""
        if self._last is not None and (self._running is not None or self._whole.ended):
            return self._last
        return self._inflow.position

    def close(self) -> None:
        """Stop the readers, and close the clients that were made here."""
        if self._closed:
            return
        self._closed = True
        self._inflow.close()
        if self._advancer is not None:
            self._advancer.stop()
        for reader in self._readers.values():
            reader.stop()
        self._topology.close()
        for reader in self._readers.values():
            reader.join(JOIN_S)

    def next_batch(
        self, *, max_await_ms: int | None = None, max_events: int | None = None
    ) -> tuple[list[bytes], Token]:
        """What the merge lets go now, or as soon as it lets go of anything."""
        await_ms = self._reading.max_await_ms if max_await_ms is None else max_await_ms
        events: list[bytes] = []
        if self.alive and not self._fill(events, max_events):
            self._raise_what_waits()
            self._inflow.wait(await_ms / 1000)
            if not self._fill(events, max_events):
                self._raise_what_waits()
        if self._whole.ended:
            self._inflow.close()
        return events, as_token(self.position)

    def _raise_what_waits(self) -> None:
        try:
            self._inflow.raise_what_waits()
        except SourceLost as lost:
            self._check_still_there(str(lost.fields.get("shard", "")))
            raise
        except TailraceError:
            self._failed = True
            raise

    def _check_still_there(self, name: str) -> None:
        """A shard that does not answer because it was removed will never answer."""
        config = self._topology.config
        if config is None or name == GUIDE:
            return
        catalog = Catalog(config.client)
        if name not in config.ask(catalog.shards, CONFIG_GRANT):
            self._failed = True
            raise removed(name)

    def _fill(self, events: list[bytes], max_events: int | None) -> bool:
        """Take what may leave; whether there was any of it."""
        if self._running is None:
            self._running = self._whole.run(self._leaving())
        size = 0
        for event in self._running:
            events.append(event.raw)
            self._last = (event.token, event.type_bits)
            size += len(event.raw)
            if size >= BATCH_BYTES or len(events) == max_events:
                return True
        self._running = None
        return bool(events)

    def _leaving(self) -> Iterator[Event]:
        while taken := self._inflow.take():
            for name, event in taken:
                if name == GUIDE:
                    self._follow(event)
                    continue
                if event.is_control:
                    self._check_known(event)
                yield event

    def _follow(self, event: Event) -> None:
        """A shard came or went."""
        said = bson.decode(event.raw)
        name = str(said["documentKey"]["_id"])
        if event.operation == b"insert" and name not in self._readers:
            deployment = self._topology.open_shard(name, str(said["fullDocument"]["host"]))
            options = replace(self._options, start=event.time + 1, client_token=None)
            self._read(name, deployment, options)
        elif event.operation == b"delete":
            reader = self._readers.pop(name, None)
            if reader is None:
                self._failed = True
                raise removed(name)
            self._inflow.remove(name)
            reader.stop()

    def _check_known(self, event: Event) -> None:
        """Without a guide, a range that goes to a shard that is not read is an error."""
        name = new_shard_of(event.entry)
        if self._topology.config is None and name and name not in self._readers:
            self._failed = True
            raise UnsupportedSource(
                f"shard {name} has got a range, but is not among those that were named; name it "
                "too, or give the config server, which knows them all",
                shard=name,
            )

    def lag(self) -> tuple[int, int]:
        """Seconds behind the newest entry of any shard, and until a log forgets this place."""
        reached = cluster_time(self.position[0]) >> 32
        bounds = [reader.bounds for reader in self._shard_readers() if any(reader.bounds)]
        newest = max((newest for _, newest in bounds), default=0) >> 32
        oldest = max((oldest for oldest, _ in bounds), default=0) >> 32
        return max(0, newest - reached), max(0, reached - oldest)

    def shards(self) -> list[ShardStatus]:
        """How each shard's reader is doing, in the order of their names."""
        promises = self._inflow.promises
        newest = max((cluster_time(data) for data, _ in promises.values()), default=0)
        found = []
        for name, (data, _) in sorted(promises.items()):
            if name != GUIDE:
                reached = cluster_time(data)
                behind_s = max(0, (newest >> 32) - (reached >> 32))
                found.append(ShardStatus(name, reached, behind_s, *self._inflow.waiting(name)))
        return found

    def _shard_readers(self) -> list[Any]:
        return [reader for name, reader in self._readers.items() if name != GUIDE]


def removed(name: str) -> ServerError:
    """The error of a stream that would need a shard that is no longer there."""
    return ServerError(
        f"shard {name} was removed since, and its events with it",
        code=HISTORY_LOST,
        labels=("NonResumableChangeStreamError",),
        shard=name,
    )
