"""The stages that a user appended to the change stream.

They run over finished events. The languages are the query room's; this stage only
applies a compiled pipeline to each event, and checks that the token survived.

Rules: facts/server-semantics, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from tailrace.errors import ServerError
from tailrace.event.event import Event, id_element
from tailrace.raw import element, spans
from tailrace.stage.options import StreamOptions

CHANGE_STREAM_FATAL = 280


class Pipeline(Protocol):
    """A compiled pipeline: the query room's, or any other."""

    splits: bool
    """Whether its last stage splits large events."""

    def run(self, event: bytes) -> bytes | None:
        """The event as the pipeline leaves it; None when it drops it."""


def with_pipeline(options: StreamOptions, pipeline: Pipeline | None) -> StreamOptions:
    """The options of a stream with these stages: one of them changes the stream's tokens."""
    if pipeline is None or not pipeline.splits:
        return options
    return replace(options, shape=replace(options.shape, splits=True))


class UserPipeline:
    """Applies the user's stages to each event."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def __call__(self, source: Iterable[Event]) -> Iterator[Event]:
        """What the pipeline lets through, reshaped; its token must be as it was."""
        run = self._pipeline.run
        for event in source:
            raw = run(event.raw)
            if raw is None:
                continue
            if raw is not event.raw:
                check_token(raw, event)
                event.raw = raw
            yield event


def check_token(raw: bytes, event: Event) -> None:
    """The error of a pipeline that changed or removed the token."""
    span = spans(raw).get(b"_id")
    if span is not None:
        kind, start, end = span
        if element(b"_id", kind, raw[start:end]) == id_element(event.token, event.type_bits):
            return
    raise ServerError(
        "Encountered an event whose _id field, which contains the resume token, was modified by "
        "the pipeline. Modifying the _id field of an event makes it impossible to resume the "
        "stream from that point. Only transformations that retain the unmodified _id field are "
        "allowed.",
        code=CHANGE_STREAM_FATAL,
        labels=("NonResumableChangeStreamError",),
    )
