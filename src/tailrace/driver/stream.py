"""A change stream of a synchronous client: the machine's steps, carried out.

One thread reads at a time; any other may close. A read that waits then ends as soon as
the server notices that the cursor was killed.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from pymongo.errors import PyMongoError

from tailrace.driver.document import RawDocument
from tailrace.driver.facts import StreamFacts
from tailrace.driver.machine import ResumeMachine
from tailrace.driver.requests import (
    Answer,
    GetMore,
    Kill,
    LoadToken,
    Open,
    Pause,
    Request,
    SaveToken,
    Steps,
    Token,
)
from tailrace.engine import ShardStatus

T = TypeVar("T")


class Transport(Protocol):
    """What runs the commands of a stream."""

    def perform(self, request: Open | GetMore | Kill) -> Answer:
        """Run one command; its error comes back as facts. Kill is never waited for long."""

    def lag(self) -> tuple[int, int] | None:
        """How far behind it is, and how much of the log is left; None when nobody knows."""

    def shards(self) -> list[ShardStatus]:
        """How each shard is being read; nothing where that is not ours to know."""

    def end(self) -> None:
        """Called when the stream is closed, perhaps more than once."""


class ChangeStream(StreamFacts):
    """The events of a deployment, a database or a collection, in order, resumed by itself.

    Made by ``tailrace.watch``. An iterator and a context manager; ``next`` waits for an
    event, ``try_next`` and ``next_batch`` make one round trip at most.
    """

    def __init__(
        self, machine: ResumeMachine, transport: Transport, store: Any = None, **facts: Any
    ) -> None:
        super().__init__(machine, **facts)
        self._transport = transport
        self._store = store
        self._lock = threading.RLock()
        self._closing = threading.Event()
        try:
            self._run(machine.open())
        except BaseException:
            transport.end()
            raise
        self._forgotten = weakref.finalize(self, _close_soon, machine, transport)
        self._forgotten.atexit = False

    def next(self) -> Any:
        """The next event, waited for as long as it takes; ``StopIteration`` at the end."""
        event = self._machine.take()
        if event is None:
            event = self._run(self._machine.next())
        if event is None:
            raise StopIteration
        return self._decoded(event)

    def __next__(self) -> Any:
        return self.next()

    def __iter__(self) -> ChangeStream:
        return self

    def try_next(self) -> Any:
        """The next event, or None when one getMore, or one resume, brought none."""
        event = self._run(self._machine.try_next())
        return None if event is None else self._decoded(event)

    def next_batch(self) -> tuple[Sequence[RawDocument], Any]:
        """All that is fetched, else one getMore's events, as raw BSON, and the token behind.

        There may be no events, and a newer token all the same.
        """
        events, token = self._run(self._machine.next_batch())
        return events, self._decoded_token(token)

    def lag(self) -> tuple[int, int] | None:
        """Seconds behind the log's end, and how long until the log forgets this place.

        Only our own engine knows; None from the server's.
        """
        return self._transport.lag()

    def shards(self) -> list[ShardStatus]:
        """How each shard of a cluster is being read; only our own engine knows."""
        return self._transport.shards()

    def commit(self) -> None:
        """Have the token store hold the place behind all that was handed out, now."""
        self._run(self._machine.commit())

    def close(self) -> None:
        """End the stream and its cursor; also from another thread."""
        self._closing.set()
        self._forgotten.detach()
        for request in self._machine.close():
            self._perform(request)
        if self._lock.acquire(blocking=False):
            try:
                self._transport.end()
            finally:
                self._lock.release()

    def __enter__(self) -> ChangeStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        with self._lock:
            try:
                answer: Answer = None
                while True:
                    try:
                        request = steps.send(answer)
                    except StopIteration as end:
                        result: T = end.value
                        return result
                    answer = self._perform(request)
            finally:
                steps.close()
                if self._machine.closed:
                    self._transport.end()

    def _perform(self, request: Request) -> Answer:
        try:
            if isinstance(request, Open | GetMore | Kill):
                return self._transport.perform(request)
            if isinstance(request, Pause):
                self._closing.wait(request.seconds)
            elif isinstance(request, SaveToken):
                self._store.save(request.token)
            elif isinstance(request, LoadToken):
                stored: Token | None = self._store.load()
                return stored
        except BaseException:
            self._machine.interrupted()
            raise
        return None


def _close_soon(machine: ResumeMachine, transport: Transport) -> None:
    """End what a stream that nobody has any more left on its server.

    In a thread of its own: garbage is collected anywhere, also where PyMongo holds a lock.
    """

    def close() -> None:
        with contextlib.suppress(PyMongoError):
            for request in machine.close():
                if isinstance(request, Kill):
                    transport.perform(request)
            transport.end()

    threading.Thread(target=close, name="forgotten change stream", daemon=True).start()
