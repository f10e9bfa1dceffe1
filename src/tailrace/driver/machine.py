"""The resume machine: a change stream without its sockets.

Each public method is a row of steps: it yields requests, is sent their answers, and
ends with its result or an exception. Whoever runs the steps decides nothing, so the
synchronous and the asynchronous stream, the server's stage and our own engine, and the
fake of the tests all behave alike.

Laws: an error of an aggregate is never resumed, one of a getMore once; a stream is
resumed from the token that it exposes; killCursors goes to the cursor's own server
only and its outcome is ignored; a call that ran out of time leaves the stream valid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tailrace.driver import commands
from tailrace.driver.commands import Start, Wanted, first_start
from tailrace.driver.document import RawDocument, has_token
from tailrace.driver.patience import Patience, retried_as_read
from tailrace.driver.position import Position
from tailrace.driver.profiles import Profile
from tailrace.driver.requests import (
    Answer,
    Cursor,
    Document,
    Failure,
    GetMore,
    Kill,
    Kind,
    LoadToken,
    Open,
    Pause,
    Reply,
    SaveToken,
    Steps,
    Token,
)
from tailrace.errors import OptionError, ProtocolError

DEAD_CURSOR_CODES = frozenset(
    (
        43,  # CursorNotFound
        136,  # CappedPositionLost
        175,  # QueryPlanKilled
        237,  # CursorKilled
    )
)
"""After these the server has no cursor left to kill."""
NO_RESUMING = "Cannot provide resume functionality when the resume token is missing"


class ResumeMachine:
    """One change stream: what was asked for, where it is, and what to do next."""

    def __init__(
        self,
        wanted: Wanted,
        profile: Profile,
        *,
        clock: Callable[[], float],
        timeout_s: float | None = None,
        retry_reads: bool = True,
        patience: Patience | None = None,
        stored: bool = False,
    ) -> None:
        self._wanted = wanted
        self._profile = profile
        self._clock = clock
        self._timeout_s = timeout_s
        self._retry_reads = retry_reads
        self._patience = patience
        self._stored = stored
        self._saved: Token | None = None
        self._position = Position(wanted, profile)
        self._deadline: float | None = None
        self._batch: Sequence[RawDocument] = ()
        self._at = 0
        self._batch_token: Token | None = None
        self._lost = False
        self._over = False
        self._fruitless = 0
        self._wire_version: int | None = None
        self.cursor: Cursor | None = None
        """The cursor that is open on a server."""
        self.closed = False
        """Whether the caller, or an error that is final, has ended the stream."""

    @property
    def token(self) -> Token | None:
        """What a resume would start from now."""
        return self._position.token

    @property
    def buffered(self) -> int:
        """How many events were fetched and not yet handed out."""
        return len(self._batch) - self._at

    @property
    def alive(self) -> bool:
        """Whether more may come."""
        return not self.closed and (self.buffered > 0 or not self._over)

    def open(self) -> Steps[None]:
        """Open the stream: where the store says, or where the caller said."""
        self._begin()
        if self._stored:
            self._take_stored((yield LoadToken()))
        while True:
            answer = yield from self._aggregate(first_start(self._wanted, self._profile))
            if isinstance(answer, Reply):
                self._opened(answer, first=True)
                break
            if self._patience is None or not self._patience.bears(answer):
                raise answer.error
            yield Pause(self._patience.pause_s())
        yield from self.commit()

    def next(self) -> Steps[RawDocument | None]:
        """The next event, waited for; None when the stream is at its end."""
        self._begin()
        while self.alive:
            event = yield from self._step()
            if event is not None:
                return event
        return None

    def take(self) -> RawDocument | None:
        """The next event of those that are fetched, with no step at all; None for none."""
        if not self.buffered or self.closed:
            return None
        event = self._batch[self._at]
        if not has_token(event):
            return None
        self._at += 1
        self._position.consumed(event, self._batch_token, last=self._at == len(self._batch))
        return event

    def try_next(self) -> Steps[RawDocument | None]:
        """The next event, or None after one getMore, or one resume, that brought none."""
        self._begin()
        return (yield from self._step()) if self.alive else None

    def next_batch(self) -> Steps[tuple[Sequence[RawDocument], Token | None]]:
        """All that is fetched, else what one getMore, or one resume, brings; and its token."""
        self._begin()
        if self.alive and not self.buffered:
            yield from self._advance()
        events = self._batch[self._at :] if self._at else self._batch
        if not all(map(has_token, events)):
            yield from self._without_token()
        if events:
            self._at = len(self._batch)
            self._position.consumed(events[-1], self._batch_token, last=True)
        return events, self.token

    def commit(self) -> Steps[None]:
        """Have the store hold the token of what was handed out so far."""
        token = self.token
        if self._stored and token is not None and token != self._saved:
            yield SaveToken(token)
            self._saved = token

    def close(self) -> Steps[None]:
        """End the stream, and its cursor on its server."""
        if self.closed:
            return
        self.closed = True
        yield from self._kill()

    def interrupted(self) -> None:
        """A request was given up half-way: what its cursor sent since then is unknown."""
        self._lost = True

    def _begin(self) -> None:
        self._deadline = None if self._timeout_s is None else self._clock() + self._timeout_s

    @property
    def _left_s(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._clock()

    def _take_stored(self, answer: Answer) -> None:
        if answer is None or isinstance(answer, Reply | Failure):
            return
        # Only startAfter goes on behind an invalidate, too.
        self._wanted = replace(
            self._wanted, start_after=answer, resume_after=None, start_at_operation_time=None
        )
        self._position = Position(self._wanted, self._profile)
        self._saved = answer

    def _step(self) -> Steps[RawDocument | None]:
        if not self.buffered:
            yield from self._advance()
        event = self.take()
        if event is None and self.buffered and not self.closed:
            yield from self._without_token()
        return event

    def _without_token(self) -> Steps[None]:
        yield from self.close()
        raise OptionError(NO_RESUMING, option="pipeline")

    def _advance(self) -> Steps[None]:
        """Fetch a batch: one getMore, or one resume when the cursor is lost."""
        yield from self.commit()
        pause_s = self._patience.pause_s() if self._patience else 0.0
        if pause_s:
            yield Pause(pause_s)
        if self.closed:
            return
        if self._lost or self.cursor is None:
            yield from self._resume()
            return
        answer = yield GetMore(
            self.cursor,
            commands.get_more(self._wanted, self.cursor, self._wire_version),
            self._left_s,
        )
        if isinstance(answer, Reply):
            self._fruitless = 0
            self._received(answer.document, "nextBatch")
        elif isinstance(answer, Failure):
            yield from self._recover(answer)

    def _recover(self, failure: Failure) -> Steps[None]:
        """Resume after what went wrong with a getMore, or say it."""
        if self.closed:
            return
        if failure.timed_out and self._deadline is not None:
            self._lost = True
            raise failure.error
        self._fruitless += failure.kind is Kind.SERVER
        most = self._profile.most_fruitless
        resumable = self._profile.resumable(failure) and (most is None or self._fruitless <= most)
        if not resumable and not (self._patience and self._patience.bears(failure)):
            yield from self._end(failure)
        self._lost = True
        if failure.code in DEAD_CURSOR_CODES:
            self.cursor = None
        yield from self._resume()

    def _resume(self) -> Steps[None]:
        yield from self._kill()
        answer = yield from self._aggregate(self._position.resume_start(self._wire_version))
        if isinstance(answer, Reply):
            self._opened(answer, first=False)
            if self.closed:  # meanwhile, by another thread
                yield from self._kill()
        elif self.closed or (self._patience and self._patience.bears(answer)):
            return
        elif answer.timed_out or answer.kind is not Kind.SERVER or self._profile.resumable(answer):
            raise answer.error  # the stream stays: its next step resumes again
        else:
            yield from self._end(answer)

    def _end(self, failure: Failure) -> Steps[None]:
        if failure.code in DEAD_CURSOR_CODES:
            self.cursor = None
        yield from self.close()
        raise failure.error

    def _kill(self) -> Steps[None]:
        cursor, self.cursor = self.cursor, None
        if cursor is not None:
            yield Kill(cursor, commands.kill_cursors(cursor))

    def _aggregate(self, start: Start) -> Steps[Reply | Failure]:
        first = yield from self._aggregate_once(start)
        if isinstance(first, Reply) or not self._retry_reads or not retried_as_read(first):
            return first
        second = yield from self._aggregate_once(start)
        # That no server was found the second time says less than what happened the first.
        gone = isinstance(second, Failure) and second.kind is Kind.SELECTION
        return first if gone else second

    def _aggregate_once(self, start: Start) -> Steps[Reply | Failure]:
        command = commands.aggregate(self._wanted, self._profile, start)
        answer = yield Open(self._wanted.database, command, self._left_s)
        assert isinstance(answer, Reply | Failure)  # noqa: S101  what Open is answered with
        return answer

    def _opened(self, reply: Reply, *, first: bool) -> None:
        cursor = reply.document["cursor"]
        self._wire_version = reply.wire_version
        self._lost = False
        if self._patience:
            self._patience.calm()
        database, _, collection = cursor["ns"].partition(".")
        self.cursor = Cursor(int(cursor["id"]), database, collection, reply.address)
        if first:
            empty = not cursor["firstBatch"]
            self._position.opened(reply.document, empty=empty, wire_version=reply.wire_version)
        self._received(reply.document, "firstBatch")

    def _received(self, document: Document, batch: str) -> None:
        cursor = document["cursor"]
        if batch not in cursor:
            raise ProtocolError(f"a cursor's reply without {batch}")
        self._batch, self._at = cursor[batch], 0
        self._batch_token = cursor.get("postBatchResumeToken")
        if not self._batch:
            self._position.idle(self._batch_token)
        if int(cursor["id"]) == 0:
            self._over, self.cursor = True, None
