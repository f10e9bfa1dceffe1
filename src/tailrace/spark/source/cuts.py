"""Where a batch ends: the rules of cut, ``from`` and ``until``, over any log. Pure.

An entry belongs to a batch by its effective time, which is when a snapshot read begins
to see it: ``commitTimestamp`` for a prepared transaction, whose commit entry stands later
in the log; its own time for all else. The batch (s, e] scans the log behind ``s.from`` up
to ``e.until`` and keeps what has ``s.cut`` < effective time <= ``e.cut``.

A cut lies below every prepare that the log up to ``until`` leaves undecided. So every
transaction of the cut has its commit entry at or before ``until``, and only the stretch
behind the last cut must be looked through for prepares: nothing must be remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tailrace.spark.source.offsets import Offset, ShardOffset
from tailrace.token import ResumeToken, high_water_mark

MARK_VERSION = 0
"""Of the high-water marks that stand for a time: these sort before all events of it."""


class Log(Protocol):
    """One shard's log, seen from afar: times of entries, never their contents.

    All is read at majority, so that what was answered once stays so, but for the oldest
    entries, which leave the log. Called by the driver only, a few times for each batch.
    """

    name: str
    """The shard's name."""

    def reached(self) -> int:
        """The time of an entry up to which the log is final, asked anew each time."""

    def entry_at(self, time: int) -> bool:
        """Whether an entry of exactly this time is in the log.

        ChangeStreamHistoryLost when the log begins behind this time.
        """

    def before(self, time: int) -> int:
        """The time of some entry before this time, near it; the log's first when there is none."""

    def first_from(self, time: int) -> int | None:
        """The time of the first entry at or after a time."""

    def advance(self, start: int, limit: Limit) -> int | None:
        """The time of the entry that fills the limit, counted behind ``start``; None: not full."""

    def undecided(self, start: int, end: int) -> Sequence[int]:
        """The times of the prepares behind ``start``, up to ``end``, that are undecided at ``end``.

        With ``end`` before a decision in the log the prepare is undecided, whatever came later.
        """

    def open_at(self, time: int) -> Sequence[int]:
        """The times of all prepares at or before a time that were undecided then.

        Asked once, when a query begins; may name a few that were decided.
        """


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a batch should hold at most; None is no limit."""

    events: int | None = None
    size: int | None = None

    def doubled(self) -> Limit:
        """Twice as much."""
        return Limit(self.events and 2 * self.events, self.size and 2 * self.size)

    @property
    def is_none(self) -> bool:
        """Whether it limits nothing."""
        return self.events is None and self.size is None


def cut_below(end: int, undecided: Sequence[int]) -> int:
    """The last cut that the log up to ``end`` allows."""
    return min([end, *(time - 1 for time in undecided)])


def begin(log: Log, time: int, token: str | None = None) -> Offset:
    """Where a query begins that shows all events from a time on, or all behind a token.

    Of the transactions that were prepared before and are committed later, all is shown:
    their events stand behind the time in the log, as the server's own stream has them.
    """
    cut = cut_below(time - 1, log.open_at(time - 1))
    scan = log.before(time)
    after = token or high_water_mark(time, MARK_VERSION).decode()
    return Offset(cut, {log.name: ShardOffset(scan, scan)}, after)


def next_end(log: Log, start: Offset, limit: Limit, ceiling: int | None = None) -> Offset:
    """The end of the batch that begins at ``start``; ``start`` itself when there is none.

    The limit is soft: it gives way until the batch moves the cut. Nothing behind the
    ``ceiling``, an entry's time, is read.
    """
    shard = start.shards[log.name]
    reached = log.reached()
    if ceiling is not None:
        reached = min(reached, ceiling)
    reached = max(reached, shard.until)
    cut, until = start.cut, shard.until
    while cut <= start.cut:
        filled = None if limit.is_none else log.advance(shard.start, limit)
        until = reached if filled is None else min(reached, max(filled, shard.until))
        cut = max(start.cut, cut_below(until, log.undecided(start.cut, until)))
        if until == reached:
            break
        limit = limit.doubled()
    began = start if start.after is not None and start.began is None else None
    if cut == start.cut:
        return start if began is None else Offset(cut, start.shards, start.after, began)
    scan = until if cut == until else max(shard.start, log.before(cut + 1))
    after = start.after if start.after is not None and cut < _time_of(start.after) else None
    return Offset(cut, {log.name: ShardOffset(scan, until)}, after, began)


def end_at(log: Log, start: Offset, time: int) -> Offset:
    """The end of the range that begins at ``start`` and shows all events up to a time.

    The cut stays below the time when a prepare at or before it is undecided to this day.
    """
    reached = log.reached()
    target = min(time, reached)
    until = log.first_from(target) or reached
    undecided = log.undecided(start.cut, until)
    if cut_below(until, undecided) < target:
        until = reached
        undecided = log.undecided(start.cut, until)
    cut = max(start.cut, min(target, cut_below(until, undecided)))
    shard = start.shards[log.name]
    return Offset(cut, {log.name: ShardOffset(shard.start, max(until, shard.until))})


@dataclass(frozen=True, slots=True)
class Bounds:
    """What decides whether an event is of a batch."""

    behind: int
    """The cut of the batch before."""
    cut: int
    after: str | None = None

    def keeps(self, effective: int, token: bytes) -> bool:
        """Whether an event is of this batch, by its effective time and its token."""
        if not self.behind < effective <= self.cut:
            return False
        return self.after is None or token > self.after.encode()


def _time_of(token: str) -> int:
    return ResumeToken.parse(token).cluster_time
