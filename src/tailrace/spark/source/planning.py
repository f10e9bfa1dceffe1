"""What the driver does: where a query begins, where a batch ends, how it is sliced.

The rules are in ``cuts`` and ``slices``; this joins them to a replica set and to the
options of a query. Everything is asked when it is needed: a planner has no state but the
connection, and the point at which an ``AvailableNow`` query ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tailrace.engine.source import Source, probe
from tailrace.errors import CheckpointError, OptionError, SourceLost
from tailrace.oplog.losses import never_there, said
from tailrace.spark.source.connection import connect
from tailrace.spark.source.cuts import Bounds, Limit, begin, end_at, next_end
from tailrace.spark.source.log import ReplicaSetLog
from tailrace.spark.source.offsets import Offset, ShardOffset
from tailrace.spark.source.options import SourceOptions
from tailrace.spark.source.reading import SliceTask
from tailrace.spark.source.slices import slice_ends
from tailrace.stage.options import StreamOptions, parse_options
from tailrace.stage.scope import Selection


class Planner:
    """Plans the batches of one query over one replica set."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._deployment, _ = connect(options.uri)
        self._source: Source = probe(self._deployment)
        self.log = ReplicaSetLog(self._deployment, self._source.name)
        self._ceiling: int | None = None

    def begin(self) -> Offset:
        """Where a new query begins."""
        start = self._options.start
        time = start.time
        if time is None:
            return begin(self.log, self.log.reached() + 1)
        if time > self.log.reached() + 1:
            raise OptionError(f"startAt: {said(time)} is not reached yet", option="startAt")
        return begin(self.log, time, start.token)

    def stop_at_now(self) -> None:
        """Let the query end at what is there now."""
        self._ceiling = self.log.reached()

    def end(self, start: Offset, limit: Limit) -> Offset:
        """The end of the batch that begins at ``start``; ``start`` when there is nothing new."""
        self.check(start)
        return next_end(self.log, start, limit, self._ceiling)

    def range(self) -> tuple[Offset, Offset]:
        """The two ends of a batch read."""
        start, end = self.begin(), self._options.end.time
        self.check(start)
        if end is None:
            return start, end_at(self.log, start, self.log.reached())
        last = end_at(self.log, start, end)
        if last.cut < min(end, self.log.reached()):
            raise SourceLost(
                f"a transaction that was prepared at {said(last.cut + 1)} is not decided yet: "
                "what comes behind cannot be read whole before it is",
                time=last.cut + 1,
            )
        return start, last

    def check(self, offset: Offset) -> None:
        """The error of an offset that is not of this source, or whose place left its log."""
        shard = offset.shards.get(self.log.name)
        if shard is None:
            raise CheckpointError(
                f"the checkpoint is of another source: of {', '.join(offset.shards) or 'nothing'}, "
                f"and this is {self.log.name}"
            )
        for time in (shard.start, shard.until):
            if not self.log.entry_at(time):
                raise never_there(time, self.log.name)

    def tasks(self, start: Offset, end: Offset) -> list[SliceTask]:
        """The slices of a batch."""
        self.check(start)
        bounds = Bounds(start.cut, end.cut, start.after)
        stream = self._stream_options()
        behind, until = start.shards[self.log.name].start, end.shards[self.log.name].until
        tasks = []
        for last in slice_ends(self.log, behind, until, self._options.slices):
            tasks.append(SliceTask(self.log.name, behind, last, bounds, stream, self.log.clock))
            behind = last
        return [] if start.cut == end.cut else tasks

    def backlog(self) -> dict[str, Any]:
        """How far the source is, as an offset shows it, and how much oplog there is."""
        reached, oldest = self.log.reached(), self.log.oldest()
        newest = Offset(reached, {self.log.name: ShardOffset(reached, reached)})
        window = {"oldest": said(oldest), "seconds": (reached >> 32) - (oldest >> 32)}
        return {**newest.document, "oplog": window}

    def _stream_options(self) -> StreamOptions:
        options = self._options
        asked = {}
        if options.before_change != "off":
            asked["fullDocumentBeforeChange"] = options.before_change
        parsed = parse_options(
            asked, None, self._source.version, parameters=self._source.parameters
        )
        if not (options.namespaces or options.exclude_namespaces):
            return parsed
        return replace(parsed, selection=Selection(options.namespaces, options.exclude_namespaces))
