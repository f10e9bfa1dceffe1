"""Where the readers of the shards meet: the router's merge, shared by threads, and bounded.

A reader puts events in and waits while its own shard has too much of them lying here;
whoever reads the stream takes out what the merge lets go. Nobody waits for ever: what
holds the others back is by its nature the shard whose events leave at once, so the one
that is waited for is never itself waiting for room.

A reader's final error stands here until everything before it was taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.errors import SourceLost, TailraceError
from tailrace.event.event import Event
from tailrace.router import Merge, Place
from tailrace.token import cluster_time

SHARD_BYTES = 32 << 20
"""What may wait of one shard: two full batches."""
CHUNK_EVENTS = 512
"""Taken at once, so that the lock is not held for long."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Events wait for shards that are behind."""

    until: int
    """The time that the others must pass for all of it to leave."""
    witness: str
    """A shard that has reached this time."""
    behind: tuple[str, ...]


class Inflow:
    """The merge of a live cluster's shards."""

    def __init__(self, start: Place, shard_bytes: int = SHARD_BYTES) -> None:
        self._merge: Merge[Event] = Merge(start)
        self._shard_bytes = shard_bytes
        self._bytes: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._error: TailraceError | None = None
        self._lost: SourceLost | None = None

    def add(self, name: str, promise: Place, *, guide: bool = False) -> None:
        """Take in a shard, before its reader puts anything."""
        with self._changed:
            self._bytes[name] = 0
            self._merge.add(name, promise, guide=guide)

    def remove(self, name: str) -> None:
        """Take out a shard that is no longer of the cluster, with all that waits of it."""
        with self._changed:
            self._bytes.pop(name, None)
            self._merge.remove(name)
            self._changed.notify_all()

    def put(self, name: str, events: Sequence[Event], promise: Place) -> bool:
        """A reader's next events; waits for room. False when nothing more is wanted."""
        with self._changed:
            if self._closed or name not in self._bytes:
                return False
            self._bytes[name] += sum(len(event.raw) for event in events)
            if events:
                self._newest[name] = events[-1].time
            self._merge.feed(name, events, promise)
            self._changed.notify_all()
            while not self._closed and self._bytes.get(name, 0) > self._shard_bytes:
                self._changed.wait()
            return not self._closed and name in self._bytes

    def end(self, name: str) -> None:
        """A shard's stream ended; what it brought still leaves."""
        with self._changed:
            if name in self._bytes:
                self._merge.end(name)
                self._changed.notify_all()

    def fail(self, error: TailraceError) -> None:
        """A reader cannot go on; the first such error ends the stream."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def report(self, lost: SourceLost) -> None:
        """A reader gets no answer, and goes on asking."""
        with self._changed:
            self._lost = lost
            self._changed.notify_all()

    def take(self) -> list[tuple[str, Event]]:
        """Some of what may leave now, in order; nothing behind a guide's event."""
        taken: list[tuple[str, Event]] = []
        with self._changed:
            for name, event in self._merge.ready():
                taken.append((name, event))
                held = self._bytes[name]
                self._bytes[name] = held - len(event.raw)
                if held > self._shard_bytes >= self._bytes[name]:
                    self._changed.notify_all()
                if len(taken) == CHUNK_EVENTS or self._merge.is_guide(name):
                    break
        return taken

    def wait(self, seconds: float) -> None:
        """Until something may leave, or was reported, or a reader failed, or time is up."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (self._closed or self._error or self._lost or self._merge.has_ready):
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(left)

    def raise_what_waits(self) -> None:
        """What a reader had to say; a final error stays, for all to come."""
        with self._changed:
            lost, self._lost = self._lost, None
            if self._error is not None:
                raise self._error
            if lost is not None:
                raise lost

    def wait_until_held_back(self, seconds: float) -> HeldBack | None:
        """Until events wait for shards that are behind; None when time is up."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not self._closed:
                held = self._held_back()
                left = deadline - time.monotonic()
                if held is not None or left <= 0:
                    return held
                self._changed.wait(left)
        return None

    def _held_back(self) -> HeldBack | None:
        if self._merge.has_ready or self._merge.next_token is None:
            return None
        waiting = [name for name in self._bytes if self._merge.waiting(name)]
        witness = max(waiting, key=lambda name: self._newest.get(name, 0))
        until = self._newest[witness]
        behind = [
            name
            for name, (data, _) in self._merge.promises.items()
            if cluster_time(data) <= until and not self._merge.waiting(name)
        ]
        return HeldBack(until, witness, tuple(behind)) if behind else None

    @property
    def position(self) -> Place:
        """The token behind everything that was taken."""
        with self._changed:
            return self._merge.position

    @property
    def promises(self) -> dict[str, Place]:
        """How far each shard has got."""
        with self._changed:
            return self._merge.promises

    def waiting(self, name: str) -> tuple[int, int]:
        """Events and bytes that wait of a shard."""
        with self._changed:
            if name not in self._bytes:
                return 0, 0
            return self._merge.waiting(name), self._bytes[name]

    @property
    def closed(self) -> bool:
        """Whether nothing more is wanted."""
        return self._closed

    def close(self) -> None:
        """Let everybody who waits here go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
