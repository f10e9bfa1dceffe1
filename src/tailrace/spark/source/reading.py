"""What an executor does: one slice of the log, through the stages, into rows.

A task carries all that decides its rows, so that it gives the same ones on any executor,
at any time, as often as it is run. A transaction that ends in the slice is looked up
whole, wherever its earlier entries stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailrace.engine.live_lookups import LiveLookups
from tailrace.event.event import Event
from tailrace.oplog.slices import SliceReader
from tailrace.spark.source.connection import connect
from tailrace.spark.source.cuts import Bounds
from tailrace.spark.source.options import SourceOptions
from tailrace.spark.source.rows import Rows
from tailrace.stage.lookups import Lookups
from tailrace.stage.options import StreamOptions
from tailrace.stage.shard import ShardStream


@dataclass(frozen=True)
class SliceTask:
    """One slice of one batch of one shard."""

    shard: str
    start: int
    end: int
    bounds: Bounds
    stream: StreamOptions
    clock: Mapping[str, Any] | None = None
    """The driver's ``$clusterTime``; it decides nothing but how soon a member can answer."""


def events_of(
    entries: Iterable[bytes], stream: StreamOptions, lookups: Lookups, bounds: Bounds
) -> Iterator[Event]:
    """The events of a slice's entries that are of its batch."""
    behind, cut = bounds.behind, bounds.cut
    after = b"" if bounds.after is None else bounds.after.encode()
    for event in ShardStream(stream, lookups).run(entries):
        if behind < event.entry.effective <= cut and event.token > after:
            yield event


def read_slice(task: SliceTask, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """The rows of one slice of a live log."""
    deployment, pin = connect(options.uri)
    entries: Any = SliceReader(deployment, pin, task.start, task.end, task.clock)
    lookups = LiveLookups(deployment, task.stream.shape)
    events = events_of(entries, task.stream, lookups, task.bounds)
    yield from Rows(task.shard, options.documents).batches(events)
