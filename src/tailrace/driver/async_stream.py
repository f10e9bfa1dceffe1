"""A change stream of an asynchronous client: the same machine, awaited.

Opened by ``await``, by ``async with``, or by the first read. One task reads at a time;
any other may close. A read that is cancelled leaves the stream valid: the next one
resumes behind what was handed out.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

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

T = TypeVar("T")


class AsyncTransport(Protocol):
    """What runs the commands of a stream."""

    async def perform(self, request: Open | GetMore | Kill) -> Answer:
        """Run one command; its error comes back as facts. Kill is never waited for long."""

    async def end(self) -> None:
        """Called when the stream is closed, perhaps more than once."""


class AsyncChangeStream(StreamFacts):
    """The events of a deployment, a database or a collection, in order, resumed by itself.

    Made by ``tailrace.watch`` of an asynchronous target. An asynchronous iterator and
    context manager; ``next`` waits for an event, ``try_next`` and ``next_batch`` make
    one round trip at most.
    """

    def __init__(
        self, machine: ResumeMachine, transport: AsyncTransport, store: Any = None, **facts: Any
    ) -> None:
        super().__init__(machine, **facts)
        self._transport = transport
        self._store = store
        self._lock = asyncio.Lock()
        self._closing = asyncio.Event()
        self._opened = False

    def __await__(self) -> Generator[Any, None, AsyncChangeStream]:
        return self._open().__await__()

    async def _open(self) -> AsyncChangeStream:
        if not self._opened:
            try:
                await self._run(self._machine.open())
            except BaseException:
                await self._transport.end()
                raise
            self._opened = True
        return self

    async def next(self) -> Any:
        """The next event, waited for as long as it takes; ``StopAsyncIteration`` at the end."""
        event = self._machine.take()
        if event is not None:
            return self._decoded(event)
        await self._open()
        event = await self._run(self._machine.next())
        if event is None:
            raise StopAsyncIteration
        return self._decoded(event)

    async def __anext__(self) -> Any:
        return await self.next()

    def __aiter__(self) -> AsyncChangeStream:
        return self

    async def try_next(self) -> Any:
        """The next event, or None when one getMore, or one resume, brought none."""
        await self._open()
        event = await self._run(self._machine.try_next())
        return None if event is None else self._decoded(event)

    async def next_batch(self) -> tuple[Sequence[RawDocument], Any]:
        """All that is fetched, else one getMore's events, as raw BSON, and the token behind.

        There may be no events, and a newer token all the same.
        """
        await self._open()
        events, token = await self._run(self._machine.next_batch())
        return events, self._decoded_token(token)

    async def commit(self) -> None:
        """Have the token store hold the place behind all that was handed out, now."""
        await self._run(self._machine.commit())

    async def close(self) -> None:
        """End the stream and its cursor; also from another task."""
        self._closing.set()
        for request in self._machine.close():
            await self._perform(request)
        if not self._lock.locked():
            await self._transport.end()

    async def __aenter__(self) -> AsyncChangeStream:
        return await self._open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        async with self._lock:
            try:
                answer: Answer = None
                while True:
                    try:
                        request = steps.send(answer)
                    except StopIteration as end:
                        result: T = end.value
                        return result
                    answer = await self._perform(request)
            finally:
                steps.close()
                if self._machine.closed:
                    await self._transport.end()

    async def _perform(self, request: Request) -> Answer:
        try:
            if isinstance(request, Open | GetMore | Kill):
                return await self._transport.perform(request)
            if isinstance(request, Pause):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), request.seconds)
            elif isinstance(request, SaveToken):
                await _asked(self._store.save, request.token)
            elif isinstance(request, LoadToken):
                stored: Token | None = await _asked(self._store.load)
                return stored
        except BaseException:
            self._machine.interrupted()
            raise
        return None


async def _asked(method: Any, *arguments: Any) -> Any:
    """A store's answer: of a coroutine, or of a call in a thread, for it may block."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments)
    return await asyncio.to_thread(method, *arguments)
