"""How a sharded cluster's stream is opened: options, servers, and where it starts.

Without a start it begins now: at a time that no shard has passed, and that every shard
is told of, so that whatever is written from then on lies behind it. With one, the config
servers' log is read from there too, since a shard that was removed since has taken its
events with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from tailrace.engine.shard_keys import with_shard_keys
from tailrace.engine.sharded.catalog import Catalog
from tailrace.engine.sharded.clock import ClusterClock
from tailrace.engine.sharded.inflow import SHARD_BYTES
from tailrace.engine.sharded.refusal import refusal
from tailrace.engine.sharded.stream import Reading, ShardedStream, removed
from tailrace.engine.sharded.topology import CONFIG_GRANT, Topology
from tailrace.engine.source import LOGIN, check_collection, probe
from tailrace.engine.user_stages import UserStages
from tailrace.errors import TailraceError
from tailrace.event.shape import Version
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.tail import Tail
from tailrace.stage.options import Caller, Starts, StreamOptions, parse_options
from tailrace.stage.user import with_pipeline

Answer = TypeVar("Answer")
INSERTS_SAY_THEIR_KEY: Version = (5, 3, 0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a stream is to show, and how it is to be read."""

    namespace: str | None
    options: Mapping[str, Any] | None
    users: UserStages
    starts: Starts
    max_await_ms: int
    advance: bool = True
    shard_bytes: int = SHARD_BYTES


def open_cluster(topology: Topology, wanted: Wanted) -> ShardedStream:
    """The stream of a cluster; what was opened for it is closed with it, or at once."""
    try:
        return _open(topology, wanted)
    except BaseException:
        topology.close()
        raise


def _open(topology: Topology, wanted: Wanted) -> ShardedStream:
    source = next(iter([_asked(topology, name, probe) for name in topology.shards]))
    parsed = parse_options(
        wanted.options,
        wanted.namespace,
        source.version,
        starts=wanted.starts,
        parameters=source.parameters,
        caller=Caller(mongos=True),
    )
    stages = wanted.users.compiled(source.version, known=source.variables)
    for name in topology.shards:
        _asked(topology, name, lambda shard: check_collection(shard, parsed.scope))
    parsed = with_pipeline(_with_keys(parsed, topology.config), stages)
    clock = ClusterClock()
    if not parsed.start:
        parsed = replace(parsed, start=_now(topology, clock))
    reading = Reading(
        wanted.max_await_ms,
        wanted.advance,
        wanted.shard_bytes,
        _guide_start(topology, parsed.start),
    )
    return ShardedStream(topology, parsed, reading, clock, stages)


def _asked(topology: Topology, name: str, question: Callable[[Deployment], Answer]) -> Answer:
    """A shard's answer, or its refusal under its name."""
    try:
        return question(topology.shards[name])
    except TailraceError as error:
        raise refusal(error, name, topology.user) from error


def _now(topology: Topology, clock: ClusterClock) -> int:
    """A time that every shard knows of, and none has passed."""
    servers = [*topology.shards.values(), *((topology.config,) if topology.config else ())]
    for _ in ("hear of the latest", "tell everybody"):
        for server in servers:
            server.ask(lambda server=server: clock.hear(server.client), LOGIN)
    return clock.time + 1


def _with_keys(options: StreamOptions, config: Deployment | None) -> StreamOptions:
    if config is None or options.shape.version >= INSERTS_SAY_THEIR_KEY:
        return options
    catalog = Catalog(config.client)
    return with_shard_keys(options, config.ask(catalog.shard_keys, CONFIG_GRANT))


def _guide_start(topology: Topology, start: int) -> int:
    """From where on the guide is read: the start, as far as its log reaches back."""
    config = topology.config
    if config is None:
        return 0
    found_at = topology.found_at
    oldest, _ = Tail(config, 0).bounds()
    if oldest <= start:
        return min(start, found_at)
    since = datetime.fromtimestamp(start >> 32, timezone.utc)
    catalog = Catalog(config.client)
    for name in config.ask(lambda: catalog.removed_since(since), CONFIG_GRANT):
        if name not in topology.shards:
            raise removed(name)
    return found_at
