"""A slice of the log: all entries behind one entry and up to another, each exactly once.

Both ends are entries, and both are looked for: a scan that does not begin with the first
has lost what stood there, one that has not come to the last is not at its end, whatever
the cursor says. The read waits until the member has all up to the slice's end (majority,
``afterClusterTime``): one that lags would be short, silently. Entries may leave the log
under the scan: after each batch the member that gave it is asked whether the batch before
it is still there. A cursor that is lost is opened again behind the last entry.

Facts: facts/server-semantics, section 4.4. Knows no event.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bson.timestamp import Timestamp
from pymongo import MongoClient
from pymongo.cursor import RawBatchCursor
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.server_description import ServerDescription

from tailrace.errors import SourceLost
from tailrace.oplog.deployment import Deployment, converted, is_passing
from tailrace.oplog.losses import history_lost, never_there
from tailrace.oplog.tail import GRANT, OPLOG, RAW
from tailrace.raw import spans

BATCH_ENTRIES = 100_000
"""More than 16 MiB hold: the server ends a batch by its bytes."""

CLOCK_BEHIND = 72
"""InvalidOptions: ``afterClusterTime`` is ahead of the clock, which heartbeats soon move."""


class Pin:
    """Holds a client to one member, once it is known which; a ``server_selector``."""

    def __init__(self) -> None:
        self.address: tuple[str, int | None] | None = None

    def __call__(self, found: Sequence[ServerDescription]) -> list[ServerDescription]:
        """Of the members that the read preference allows, those that the pin allows."""
        if self.address is None:
            return list(found)
        return [each for each in found if each.address == self.address]


class SliceReader:
    """Reads one slice, for one thread; ``pin`` is the selector of the deployment's client."""

    def __init__(
        self,
        deployment: Deployment,
        pin: Pin,
        start: int,
        end: int,
        clock: Mapping[str, Any] | None = None,
    ) -> None:
        # The clock is the ``$clusterTime`` of whoever chose the ends: a member that lags far
        # behind may not have heard of it.
        self._deployment = deployment
        self._pin = pin
        self._end = end
        self._last = start
        self._clock = clock
        self._oplog = deployment.client.get_database("local").get_collection(
            OPLOG,
            codec_options=RAW,
            read_concern=ReadConcern("majority"),
            read_preference=deployment.read_preference,
        )

    def __iter__(self) -> Iterator[bytes]:
        deadline = None
        while self._last < self._end:
            before = self._last
            try:
                for batch in self._batches():
                    yield from self._entries(batch)
            except PyMongoError as error:
                if not (is_passing(error) or _is_ahead(error)):
                    raise converted(error, GRANT) from error
            if self._last >= self._end:
                return
            if deadline is None or self._last > before:
                deadline = time.monotonic() + self._deployment.patience_s
            elif time.monotonic() > deadline:
                raise SourceLost("the source gives no more entries, and not the last one")
            self._deployment.pause()

    def _batches(self) -> Iterator[bytes]:
        self._pin.address = None
        begin, last = self._last, 0
        with self._deployment.client.start_session(causal_consistency=True) as session:
            session.advance_operation_time(_timestamp(self._end))
            if self._clock is not None:
                session.advance_cluster_time(self._clock)
            cursor: RawBatchCursor[Any] = self._oplog.find_raw_batches(
                {"ts": {"$gte": _timestamp(begin), "$lte": _timestamp(self._end)}},
                batch_size=BATCH_ENTRIES,
                session=session,
            )
            with cursor:
                for batch in filter(None, cursor):
                    self._pin.address = cursor.address
                    self._check_still_there(last or begin)
                    if not last and time_of(batch) != begin:
                        raise never_there(begin, self._name())
                    yield batch
                    last = self._last
        if not last:
            self._check_still_there(begin)
            raise never_there(begin, self._name())

    def _entries(self, batch: bytes) -> Iterator[bytes]:
        """The entries of a batch, but for the one that was seen already."""
        at, seen = 0, self._last
        while at < len(batch):
            end = at + int.from_bytes(batch[at : at + 4], "little")
            entry, at = batch[at:end], end
            if seen and time_of(entry) == seen:
                seen = 0
                continue
            seen = 0
            if at == len(batch):
                self._last = time_of(entry)
            yield entry

    def _check_still_there(self, entry: int) -> None:
        """Whether the member that is read still has an entry that it gave."""
        first = next(iter(self._oplog.find({}, {"ts": 1}).limit(1)), None)
        oldest = time_of(bytes(first.raw)) if first is not None else entry + 1
        if oldest > entry:
            raise history_lost(entry, oldest)

    def _name(self) -> str:
        said = self._deployment.ask(lambda: self._deployment.client.admin.command("hello"), GRANT)
        return str(said.get("setName"))


def _is_ahead(error: PyMongoError) -> bool:
    """Whether the member's clock has not heard yet of the time that the slice ends at."""
    return isinstance(error, OperationFailure) and error.code == CLOCK_BEHIND


def pinned(uri: str, **options: Any) -> tuple[MongoClient[Any], Pin]:
    """A client of a deployment, and what holds it to one member."""
    pin = Pin()
    return MongoClient(uri, server_selector=pin, **options), pin


def time_of(entries: bytes) -> int:
    """The time of the first of some entries."""
    _, start, end = spans(entries)[b"ts"]
    return int.from_bytes(entries[start:end], "little")


def _timestamp(moment: int) -> Timestamp:
    return Timestamp(moment >> 32, moment & 0xFFFF_FFFF)
