"""The stages behind the merge of shards: what only the whole stream can decide.

Whether the token of a resume is there at all is known of the merged stream, since its
event may be of any shard; the user's pipeline comes behind that, and the first
invalidate that is left ends everything. A replica set is a merge of one.

Rules: facts/server-semantics, sections 4.2 to 4.4 and 4.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tailrace.event.event import Event
from tailrace.stage.limit import MAX_EVENT_BYTES, too_large
from tailrace.stage.options import StreamOptions
from tailrace.stage.resume import EnsureToken
from tailrace.stage.split import SplitLargeEvents
from tailrace.stage.user import Pipeline, UserPipeline

Stage = Callable[[Iterable[Any]], Iterator[Any]]


class MergedStream:
    """One stream made of the events of several shards, which come in token order."""

    def __init__(self, options: StreamOptions, pipeline: Pipeline | None = None) -> None:
        self.ended = False
        """Whether an invalidate ended the stream."""
        behind = behind_the_merge(options, None)
        users = _users(options, pipeline, merged=True)
        self._stages = [*behind, self._until_invalidate, *users]

    def run(self, events: Iterable[Event]) -> Iterator[Event]:
        """What the stream shows of these; take all of it before feeding more."""
        source: Iterable[Any] = events
        for stage in self._stages:
            source = stage(source)
        for event in source:
            if len(event.raw) > MAX_EVENT_BYTES:
                raise too_large(event)
            yield event

    def _until_invalidate(self, events: Iterable[Event]) -> Iterator[Event]:
        if self.ended:
            return
        for event in events:
            if event.is_control:
                continue
            self.ended = event.operation == b"invalidate"
            yield event
            if self.ended:
                return


def behind_the_merge(options: StreamOptions, pipeline: Pipeline | None) -> list[Stage]:
    """The stages that see the whole stream, in their order."""
    client = options.client_token
    ensured: list[Stage] = []
    if client is not None and options.resumes_from_event:
        ensured.append(EnsureToken(client, splits=options.shape.splits))
    return [*ensured, *_users(options, pipeline)]


def _users(
    options: StreamOptions, pipeline: Pipeline | None, *, merged: bool = False
) -> list[Stage]:
    stages: list[Stage] = []
    if pipeline is not None:
        stages.append(UserPipeline(pipeline))
        if options.shape.splits:
            stages.append(SplitLargeEvents(options.client_token, merged=merged))
    return stages
