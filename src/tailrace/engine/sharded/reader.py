"""One shard's reader: a thread from its oplog, through its stages, into the merge.

Events go in by pieces, so that neither a large batch nor a large transaction is ever
held whole. When a server does not answer, the reader says so and goes on asking, behind
the last event that went in; nobody else is stopped by it. Every other error is final.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tailrace.engine.sharded.inflow import Inflow
from tailrace.engine.sharded.refusal import refusal
from tailrace.errors import ProtocolError, SourceLost, TailraceError
from tailrace.event.event import Event
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.tail import Tail
from tailrace.router import Place
from tailrace.stage.lookups import Lookups
from tailrace.stage.options import StreamOptions
from tailrace.stage.shard import ShardStream
from tailrace.token import ResumeToken

PIECE_BYTES = 1 << 20
PIECE_EVENTS = 1_000
BOUNDS_EVERY_S = 5.0


class ShardReader:
    """Reads one shard until it is stopped, or its stream ends, or cannot go on."""

    def __init__(
        self,
        name: str,
        deployment: Deployment,
        options: StreamOptions,
        lookups: Callable[[], Lookups],
        inflow: Inflow,
        await_ms: int,
        user: str | None = None,
    ) -> None:
        self.name = name
        self.deployment = deployment
        self.bounds = (0, 0)
        """The times of the log's oldest and newest entries, when last asked for."""
        self._options = options
        self._lookups = lookups
        self._inflow = inflow
        self._tail = Tail(deployment, await_ms)
        self._sent = b""
        self._user = user
        self._bounds_at = 0.0
        self._stages = ShardStream(options, lookups())
        self._promise = self._stages.position
        self._thread = threading.Thread(target=self._run, name=f"tailrace-{name}", daemon=True)

    def start(self, *, guide: bool = False) -> None:
        """Take part in the merge from now on."""
        self._inflow.add(self.name, self._stages.position, guide=guide)
        self._thread.start()

    def stop(self) -> None:
        """Read no more; a read that waits ends within its wait."""
        self.deployment.close()
        self._tail.close()

    def join(self, seconds: float) -> None:
        """Wait for the thread."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._read_on()
        except TailraceError as error:
            if not self.deployment.closed:
                self._inflow.fail(refusal(error, self.name, self._user))
        except Exception as error:  # noqa: BLE001 - nobody else would ever hear of it
            if not self.deployment.closed:
                failure = ProtocolError(f"shard {self.name}: {error!r}", shard=self.name)
                failure.__cause__ = error
                self._inflow.fail(failure)

    def _read_on(self) -> None:
        opened = False
        while not self.deployment.closed:
            try:
                if not opened:
                    self._stages.open(self._tail.seek(self._options.start))
                    opened = True
                self._renew_bounds()
                entries = self._tail.read()
            except SourceLost as lost:
                self._report(lost)
                continue
            try:
                if not self._pass_on(entries):
                    return
            except SourceLost as lost:  # a look-up: what the stages had begun is gone
                self._report(lost)
                self._begin_again()
                opened = False

    def _pass_on(self, entries: Iterator[bytes]) -> bool:
        """Put in what these entries make; whether to go on."""
        piece: list[Event] = []
        size = 0
        for event in self._stages.run(entries):
            if event.token <= self._sent:
                continue
            piece.append(event)
            size += len(event.raw)
            if size >= PIECE_BYTES or len(piece) >= PIECE_EVENTS:
                if not self._put(piece, (event.token, event.type_bits)):
                    return False
                piece, size = [], 0
        if not self._put(piece, self._stages.promise):
            return False
        if self._stages.ended:
            self._inflow.end(self.name)
        return not self._stages.ended

    def _put(self, piece: list[Event], promise: Place) -> bool:
        if piece:
            self._sent = piece[-1].token
        # Behind a new beginning the stages' place is an old one for a while.
        self._promise = max(promise, self._promise, key=lambda place: place[0])
        return self._inflow.put(self.name, piece, self._promise)

    def _report(self, lost: SourceLost) -> None:
        self._inflow.report(SourceLost(f"shard {self.name}: {lost}", shard=self.name))

    def _begin_again(self) -> None:
        """Start behind what went in."""
        data, type_bits = self._promise
        if self._sent:
            token = ResumeToken.parse({"_data": data.decode(), "_typeBits": type_bits})
            self._options = replace(
                self._options, start=token.cluster_time, client_token=token, started_after=True
            )
        self._stages = ShardStream(self._options, self._lookups())

    def _renew_bounds(self) -> None:
        now = time.monotonic()
        if now - self._bounds_at >= BOUNDS_EVERY_S:
            self.bounds, self._bounds_at = self._tail.bounds(), now
