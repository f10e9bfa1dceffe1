"""A cluster's stream, ours and the servers' own: all shards of one cluster, merged.

``shards_merged`` reads each shard's own ``$changeStream`` and sorts by token, which is
what a mongos makes of them; ``merged_stream`` reads the engine's. Events of one and the
same token may come in either order: ``in_one_order`` makes it one.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import bson
from tests.support.change_streams import Seen, reached, server_stream, settle

import tailrace
from tailrace.embedded import ShardedCluster

DEADLINE_S = 90.0
AWAIT_MS = 200


def token_of(event: bytes) -> str:
    return str(bson.decode(event)["_id"]["_data"])


def in_one_order(events: list[bytes]) -> list[bytes]:
    return [event for _, same in groupby(events, token_of) for event in sorted(same)]


def settled(cluster: ShardedCluster) -> bson.Timestamp:
    """A time that the logs of all servers have passed, with everything written so far below it."""
    times = [settle(member.primary().client) for member in servers(cluster)]
    for member in servers(cluster):
        client = member.primary().client
        cluster.clock.hear(client)
    for member in servers(cluster):
        client = member.primary().client
        with cluster.clock.session(client) as session:
            client.admin.command(
                "appendOplogNote",
                1,
                data={"settled": 2},
                writeConcern={"w": "majority"},
                session=session,
            )
    return max(times)


def servers(cluster: ShardedCluster) -> list[Any]:
    return [*cluster.shards.values(), cluster.config]


def cluster_now(cluster: ShardedCluster) -> bson.Timestamp:
    """The time right behind everything that was written so far, and known to every server."""
    for _ in range(2):
        for member in servers(cluster):
            cluster.clock.hear(member.primary().client)
    after = cluster.clock.time + 1
    return bson.Timestamp(after >> 32, after & 0xFFFF_FFFF)


def shards_merged(
    cluster: ShardedCluster,
    namespace: str | None,
    options: Mapping[str, Any],
    until: bson.Timestamp,
) -> list[bytes]:
    """Each shard's own stream, merged by token, up to the first invalidate."""
    streams = [
        server_stream(shard.primary().client, namespace, options, until=until).events
        for shard in cluster.shards.values()
    ]
    merged: list[bytes] = []
    for event in heapq.merge(*streams, key=token_of):
        merged.append(event)
        if bson.decode(event)["operationType"] == "invalidate":
            break
    return merged


def merged_stream(
    client: Any,
    namespace: str | None,
    options: Mapping[str, Any],
    until: bson.Timestamp,
    **arguments: Any,
) -> Seen:
    """The engine's stream of the cluster up to a time that all logs have passed."""
    seen = Seen()
    try:
        with tailrace.open_oplog(
            client, namespace, options=options, max_await_ms=AWAIT_MS, **arguments
        ) as stream:
            read_until(stream, seen, until)
    except tailrace.ServerError as error:
        seen.error = (error.code, error.code_name)
    return seen


def read_until(stream: tailrace.OplogStream, seen: Seen, until: bson.Timestamp) -> Seen:
    """Read on until everything up to a time was seen, or the stream has ended."""
    deadline = time.monotonic() + DEADLINE_S
    while stream.alive:
        assert time.monotonic() < deadline, f"the stream stands still at {seen.token}"
        events, seen.token = stream.next_batch()
        seen.events += events
        seen.tokens.append(seen.token)
        if stream.alive and reached(seen.token, until):
            return seen
    seen.ended = True
    return seen
