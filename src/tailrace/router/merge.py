"""The k-way merge: what lies below every shard's promise leaves, smallest token first.

Each shard brings its events in order and a promise: the token below which nothing more
will come from it. An event may leave when it is not greater than the smallest promise.
Tokens are compared by their bytes, which is stream order; equal ones leave one by one,
in the order in which their shards were added, and none is taken for a duplicate.

A *guide* is a source whose events say where to read next, as the config server's do: its
promise holds the others back like any other, but no place is named by its events.

Reference: changestream-internals, section 3.5. Rules: facts/server-semantics, 4.7.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from tailrace.errors import ProtocolError

Place = tuple[bytes, bytes]
"""A token's digits, by which it is compared, and its type bits."""
END: Place = (b"\xff", b"")
"""The promise of a source that has ended: behind every token."""


class Keyed(Protocol):
    """Whatever has a token to be ordered by."""

    token: bytes
    """The token's digits."""
    type_bits: bytes
    """The token's type bits."""


Item = TypeVar("Item", bound=Keyed)


class Merge(Generic[Item]):
    """The sources of one stream, and what waits of each."""

    def __init__(self, start: Place) -> None:
        self._position = start
        self._sources: dict[str, _Source[Item]] = {}
        self._heads: list[tuple[bytes, int, _Source[Item]]] = []
        self._added = 0
        self._slowest: _Source[Item] | None = None

    def add(self, name: str, promise: Place, *, guide: bool = False) -> None:
        """Take in a source that will bring nothing below its promise."""
        self._sources[name] = _Source(name, self._added, promise, guide)
        self._added += 1
        self._find_slowest()

    def feed(self, name: str, items: Iterable[Item], promise: Place) -> None:
        """Take a source's next events, in their order, and its promise behind them."""
        source = self._sources[name]
        if promise[0] < source.promise[0]:
            raise ProtocolError(f"the promise of {name} went back", source=name)
        waited = len(source.items)
        source.items.extend(items)
        source.promise = promise
        if source.items and not waited:
            heapq.heappush(self._heads, (source.items[0].token, source.number, source))
        if source.guide:
            source.judge(self._position[0], brought=len(source.items) > waited)
        self._find_slowest()

    def end(self, name: str) -> None:
        """Wait no longer for a source; what it brought still leaves."""
        self._sources[name].promise = END
        self._find_slowest()

    def remove(self, name: str) -> None:
        """Forget a source, and what waits of it."""
        source = self._sources.pop(name)
        self._heads = [head for head in self._heads if head[2] is not source]
        heapq.heapify(self._heads)
        self._find_slowest()

    def ready(self) -> Iterator[tuple[str, Item]]:
        """Every event that may leave now, with its source's name; one at a time.

        Sources may be added and fed between two of them.
        """
        while self.has_ready:
            heads = self._heads
            source = heads[0][2]
            item = source.items.popleft()
            if source.items:
                heapq.heapreplace(heads, (source.items[0].token, source.number, source))
            else:
                heapq.heappop(heads)
            if not source.guide:
                self._position = (item.token, item.type_bits)
            yield source.name, item

    @property
    def position(self) -> Place:
        """The token to go on from behind everything that was taken."""
        slowest, reached = self._slowest, self._position
        if slowest is None or not slowest.names_places or self.has_ready:
            return reached
        return max(reached, slowest.promise, key=lambda place: place[0])

    @property
    def awaited(self) -> str | None:
        """The source whose promise holds the others back; None when all have ended."""
        return None if self._slowest is None else self._slowest.name

    @property
    def promises(self) -> dict[str, Place]:
        """How far each source has got that has not ended."""
        return {name: source.promise for name, source in self._sources.items() if source.open}

    @property
    def next_token(self) -> bytes | None:
        """The smallest token that waits; None when nothing does."""
        return self._heads[0][0] if self._heads else None

    def is_guide(self, name: str) -> bool:
        """Whether a source only says where to read."""
        return self._sources[name].guide

    def waiting(self, name: str) -> int:
        """How many events of a source have not left yet."""
        return len(self._sources[name].items)

    @property
    def has_ready(self) -> bool:
        """Whether an event may leave now."""
        return bool(self._heads) and self._heads[0][0] <= self._floor[0]

    @property
    def _floor(self) -> Place:
        return END if self._slowest is None else self._slowest.promise

    def _find_slowest(self) -> None:
        self._slowest = min(
            (source for source in self._sources.values() if source.open),
            key=lambda source: (source.promise[0], source.number),
            default=None,
        )


class _Source(Generic[Item]):
    """One source's events that wait, and its promise."""

    __slots__ = ("_unfit", "guide", "items", "name", "names_places", "number", "promise")

    def __init__(self, name: str, number: int, promise: Place, guide: bool) -> None:
        self.name = name
        self.number = number
        self.promise = promise
        self.guide = guide
        self.items: deque[Item] = deque()
        self.names_places = not guide
        """Whether its promise may be handed out as a place of the stream."""
        self._unfit = b""

    @property
    def open(self) -> bool:
        """Whether more may come of it."""
        return self.promise is not END

    def judge(self, reached: bytes, *, brought: bool) -> None:
        """Whether a guide's promise is the name of a time, and not of one of its events."""
        promise = self.promise[0]
        if brought:
            self._unfit = promise
        self.names_places = promise not in (self._unfit, b"") and promise >= reached
