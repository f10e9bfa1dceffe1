"""A live change stream as whoever reads it sees it, whatever it is made from.

Events come in batches or one by one. A batch comes with the token from which whoever
took it goes on; events taken one by one each move ``resume_token``. An error comes after
the events before it; ``SourceLost`` leaves the stream open, and reading on is safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bson.raw_bson import RawBSONDocument

from tailrace.raw import spans
from tailrace.token import ResumeToken

BATCH_BYTES = 16 << 20
"""Past this many bytes of events a batch is full, as the server's."""

Token = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """How one shard's reader is doing."""

    name: str
    promise: int
    """The cluster time that it has reached."""
    behind_s: int
    """Seconds behind the shard that has got farthest."""
    waiting_events: int
    waiting_bytes: int


class OplogStream(ABC):
    """The events of a live oplog, in batches or one by one; for one thread at a time."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._current: bytes | None = None

    def __enter__(self) -> OplogStream:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether more may come, if only an error: not closed, not ended."""

    @property
    @abstractmethod
    def position(self) -> tuple[bytes, bytes]:
        """The token (its digits and type bits) behind all batches that were handed out."""

    @abstractmethod
    def close(self) -> None:
        """End the stream; from another thread a read that waits ends within its wait."""

    @abstractmethod
    def next_batch(
        self, *, max_await_ms: int | None = None, max_events: int | None = None
    ) -> tuple[list[bytes], Token]:
        """The next events, perhaps none, as raw BSON, and the token to go on from behind them.

        Waits ``max_await_ms`` at most when there is nothing new; an empty batch moves the
        token when the log went on. A full batch is cut, and the next one goes on within
        it. ``SourceLost`` leaves the stream open.
        """

    @abstractmethod
    def lag(self) -> tuple[int, int]:
        """Seconds behind the log's end, and how long until the log forgets this place."""

    def shards(self) -> list[ShardStatus]:
        """How each shard's reader is doing; of a replica set, which has none, nothing."""
        return []

    @property
    def resume_token(self) -> Token:
        """From where to go on after what was handed out so far."""
        if self._current is not None and self._waiting:
            return token_of(self._current)
        return as_token(self.position)

    def try_next(self) -> RawBSONDocument | None:
        """The next event, or None when none came within one wait."""
        if not self._waiting:
            self._waiting.extend(self.next_batch()[0])
        if not self._waiting:
            return None
        self._current = self._waiting.popleft()
        return RawBSONDocument(self._current)

    def __iter__(self) -> Iterator[RawBSONDocument]:
        return self

    def __next__(self) -> RawBSONDocument:
        while self._waiting or self.alive:
            event = self.try_next()
            if event is not None:
                return event
        raise StopIteration


def as_token(position: tuple[bytes, bytes]) -> Token:
    """A token's document."""
    data, type_bits = position
    token: Token = {"_data": data.decode()}
    return {**token, "_typeBits": type_bits} if type_bits else token


def token_of(event: bytes) -> Token:
    """The token of an event."""
    _, start, end = spans(event)[b"_id"]
    return ResumeToken.parse(event[start:end]).document
