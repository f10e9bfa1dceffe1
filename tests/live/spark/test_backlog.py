"""A long backlog is read in batches: as fast as they go, and in the same memory throughout."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.change_streams import now, settle
from tests.support.effort import effort
from tests.support.source_query import Query

from tailrace.embedded import ReplicaSet
from tailrace.spark.source.connection import close_all
from tailrace.spark.source.offsets import Offset, batch, format_time
from tailrace.spark.source.reading import read_slice

EVENTS = effort(100_000)
"""Two million in a soak."""
PER_BATCH = EVENTS // 20
COMMAND = 10_000
GROWTH_BYTES = 24 << 20
"""What the allocator may keep; the backlog itself is larger."""


def resident() -> int:
    """The bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_backlog_is_read_in_flat_memory(start_replica_set: Callable[..., ReplicaSet]) -> None:
    replica_set = start_replica_set(oplog_size_mb=4096)
    client = replica_set.client()
    start = now(client)
    for first in range(0, EVENTS, COMMAND):
        numbers = range(first, min(first + COMMAND, EVENTS))
        client.shop.one.insert_many([{"_id": each, "text": "x" * 500} for each in numbers])
    until = settle(client)
    query = Query(
        {
            "uri": replica_set.uri,
            "startAt": format_time(start.time << 32 | start.inc),
            "maxEventsPerBatch": str(PER_BATCH),
        }
    )
    counts, sizes = [], []
    while Offset.parse(query.at).cut < (until.time << 32 | until.inc):
        begin, query.at = query.at, query.next_end()
        tasks = query.planner.tasks(*batch(begin, query.at))
        counts.append(
            sum(rows.num_rows for task in tasks for rows in read_slice(task, query.parsed))
        )
        sizes.append(resident())
    close_all()
    assert sum(counts) == EVENTS
    assert max(counts) <= PER_BATCH
    assert len(counts) >= 20
    assert max(sizes[5:]) - min(sizes[5:]) < GROWTH_BYTES
