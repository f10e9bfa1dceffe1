"""One line on a terminal that says how a stream is doing, written over itself.

Events a second, how far the stream is behind the log's end, and how long it may stand
still before the log forgets its place. ``status_text`` makes the words, with no clock.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence

from tailrace.engine import ShardStatus
from tailrace.errors import TailraceError

EVERY_S = 1.0
CLEAR_LINE = "\r\x1b[K"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


class StatusLine:
    """Shows a stream's status while it is read; nothing at all without a terminal."""

    def __init__(
        self,
        lag: Callable[[], tuple[int, int] | None],
        shards: Callable[[], Sequence[ShardStatus]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lag = lag
        self._shards = shards
        self._clock = clock
        self._shown = sys.stderr.isatty()
        self._since = clock()
        self._events = 0

    def add(self, events: int) -> None:
        """Count events, and renew the line when it is time."""
        self._events += events
        passed = self._clock() - self._since
        if not self._shown or passed < EVERY_S:
            return
        try:
            lag = self._lag()
        except TailraceError:
            return  # the next batch says what is wrong
        words = status_text(self._events / passed, *(lag or ())) + shards_text(self._shards())
        sys.stderr.write(CLEAR_LINE + words)
        sys.stderr.flush()
        self._since, self._events = self._clock(), 0

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write(CLEAR_LINE)
            sys.stderr.flush()


def status_text(rate: float, lag_s: int | None = None, window_s: int = 0) -> str:
    """The line's words; only the rate when nobody knows the rest."""
    words = f"{rate:,.0f} events/s"
    if lag_s is None:
        return words
    return f"{words} · {span(lag_s)} behind · {span(window_s)} of the oplog left"


def shards_text(shards: Sequence[ShardStatus]) -> str:
    """Which of several shards has got least far, and by how much; what waits for it."""
    if not shards:
        return ""
    slowest = min(shards, key=lambda shard: shard.promise)
    waiting = sum(shard.waiting_events for shard in shards)
    behind = f"{slowest.name} {span(slowest.behind_s)} behind the others"
    return f" · {len(shards)} shards, {behind}" + (f", {waiting:,} wait" if waiting else "")


def span(seconds: int) -> str:
    """A length of time in its two largest units."""
    for (size, unit), (below, next_unit) in itertools.pairwise(_UNITS):
        if seconds >= size:
            rest = seconds % size // below
            return (
                f"{seconds // size} {unit} {rest} {next_unit}"
                if rest
                else f"{seconds // size} {unit}"
            )
    return f"{max(seconds, 0)} s"
