"""One shard's stages, put together in the server's order.

A ``ShardStream`` takes raw entries in log order, in batches of any size, and gives
events; ``position`` is the token from which a consumer of all of them goes on. A
batch's boundary never changes the result. Nothing here reads or waits.

A shard's stream that will be merged lacks what only the whole stream can decide: see
``merged.py``. Rules: facts/server-semantics, sections 4.2 and 4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tailrace.event.event import Event
from tailrace.stage.early import EarlyMatch
from tailrace.stage.images import AddImages
from tailrace.stage.invalidate import CheckInvalidate
from tailrace.stage.limit import MAX_EVENT_BYTES, too_large
from tailrace.stage.lookups import Lookups, NoLookups
from tailrace.stage.match import OplogMatch
from tailrace.stage.merged import behind_the_merge
from tailrace.stage.options import StreamOptions
from tailrace.stage.resume import CheckResumability, check_history
from tailrace.stage.transform import Transform, only_classic
from tailrace.stage.unwind import UnwindTransactions
from tailrace.stage.user import Pipeline, UserPipeline
from tailrace.token import ResumeToken, high_water_mark

Stage = Callable[[Iterable[Any]], Iterator[Any]]


class ShardStream:
    """The change stream of one shard (or replica set), fed from its log."""

    def __init__(
        self,
        options: StreamOptions,
        lookups: Lookups | None = None,
        pipeline: Pipeline | None = None,
    ) -> None:
        lookups = lookups or NoLookups()
        self.options = options
        self._match = OplogMatch(options, lookups)
        self._invalidate = CheckInvalidate(options)
        self._last: Event | ResumeToken | None = None
        client = options.client_token
        version = options.shape.token_version
        if client is not None and options.resumes_from_event:
            version = max(version, client.version)
            self._last = client
        self._version = version
        self._stages = self._assemble(options, lookups, pipeline)
        self._users = next((each for each in self._stages if isinstance(each, UserPipeline)), None)

    def _assemble(
        self, options: StreamOptions, lookups: Lookups, pipeline: Pipeline | None
    ) -> list[Stage]:
        client = options.client_token
        resumes = options.resumes_from_event
        checks_early = resumes and (options.shape.checks_early or options.shape.for_merge)
        early = pipeline.early if pipeline is not None else None
        images = AddImages(options, lookups) if AddImages.wanted(options) else None
        stages: list[Stage | None] = [
            self._match,
            UnwindTransactions(self._match, options.shape, lookups),
            EarlyMatch(early, options) if early is not None else None,
            Transform(options),
            self._invalidate,
            CheckResumability(client) if client is not None and checks_early else None,
            None if options.shape.expanded else only_classic,
        ]
        behind = [] if options.shape.for_merge else behind_the_merge(options, pipeline)
        # Before 6.0 no image is looked for until the token was found.
        found = 1 if options.shape.images_in_log and resumes else 0
        stages += [*behind[:found], images, *behind[found:]]
        return [stage for stage in stages if stage is not None]

    def open(self, oldest: bytes) -> None:
        """Check, before the first batch, that the log reaches back to the start."""
        check_history(oldest, self.options.start)

    def run(self, entries: Iterable[bytes]) -> Iterator[Event]:
        """The events of these entries; take all of them before feeding the next batch."""
        source: Iterable[Any] = entries
        for stage in self._stages:
            source = stage(source)
        for event in source:
            self._last = event
            if len(event.raw) > MAX_EVENT_BYTES and not self.options.shape.for_merge:
                raise too_large(event)
            yield event

    @property
    def ended(self) -> bool:
        """Whether an invalidate ended the stream."""
        return self._invalidate.ended and not self._holds

    @property
    def _holds(self) -> bool:
        """Whether events that were read wait for their turn."""
        return self._users is not None and self._users.holds

    @property
    def scanned(self) -> int:
        """The time of the last entry that was looked at."""
        return self._match.scanned

    @property
    def position(self) -> tuple[bytes, bytes]:
        """The token, and its type bits, to go on from once a whole batch was taken."""
        last = self._invalidate.last if self.ended else self._last
        read = last.time if self._holds and isinstance(last, Event) else self._match.scanned
        reached = self.options.start if self._holds and last is None else read
        reached = max(reached, self.options.start)
        if isinstance(last, Event) and (self.ended or reached <= last.time):
            return last.token, last.type_bits
        if isinstance(last, ResumeToken) and reached <= last.cluster_time:
            return last.data, last.type_bits
        client = self.options.client_token
        if client is not None and reached <= client.cluster_time:
            # A mark of a newer version stays as it came until it was passed.
            return high_water_mark(reached, max(self._version, client.version)), b""
        return high_water_mark(reached, self._version), b""

    @property
    def promise(self) -> tuple[bytes, bytes]:
        """The token below which nothing more will come, once a whole batch was taken.

        No two entries of one log have the same time: behind the one that was looked at
        last, the next time begins. A shard that was asked to pass a time, and has an entry
        of just this time, would else have no reason to write another.
        """
        last = self._last
        waits = isinstance(last, ResumeToken) and self.scanned < last.cluster_time
        if self.ended or waits or self.scanned < self.options.start:
            return self.position
        return high_water_mark(self.scanned + 1, self._version), b""
