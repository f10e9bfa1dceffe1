"""The stages that the user appended to the change stream.

They run over finished events. The languages are the query room's; this stage only
applies a compiled pipeline to each event, in order, and checks that the token survived.
What the pipeline leaves to the source server is handed over in batches; the events
behind wait for it.

Rules: facts/server-semantics, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

from tailrace.errors import ServerError
from tailrace.event.event import Event, id_element
from tailrace.raw import element, spans
from tailrace.stage.early import Prefilter
from tailrace.stage.options import StreamOptions

CHANGE_STREAM_FATAL = 280
BATCH_EVENTS = 500
BATCH_BYTES = 8 << 20
"""When as much waits for the server it is asked; half of what fits into a command."""


class Evaluator(Protocol):
    """Runs stages over documents somewhere else."""

    def evaluate(self, stages: Sequence[bytes], documents: Sequence[bytes]) -> list[bytes]:
        """What the stages make of the documents, in their order; raw BSON both ways."""


class Pipeline(Protocol):
    """A compiled pipeline: the query room's, or any other."""

    splits: bool
    """Whether its last stage splits large events."""
    elsewhere: Evaluator | None
    """Who evaluates what is not evaluated here."""

    @property
    def early(self) -> Prefilter | None:
        """What of it can be asked before an event is built."""

    @property
    def end(self) -> int:
        """The place of an event that has all stages behind it."""

    def advance(self, event: bytes) -> tuple[bytes | None, int]:
        """The event as far as stages run here, and its place; None when one dropped it."""

    def rest(self, place: int) -> list[bytes]:
        """The stages from a place on, as BSON, to be run elsewhere."""


@dataclass(slots=True)
class Waiting:
    """An event on its way through the pipeline."""

    event: Event
    raw: bytes
    place: int


def with_pipeline(options: StreamOptions, pipeline: Pipeline | None) -> StreamOptions:
    """The options of a stream with these stages: one of them changes the stream's tokens."""
    if pipeline is None or not pipeline.splits:
        return options
    return replace(options, shape=replace(options.shape, splits=True))


class UserPipeline:
    """Applies the user's stages to each event."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._waiting: list[Waiting] = []
        self._bytes = 0

    @property
    def holds(self) -> bool:
        """Whether events that were read are not out yet."""
        return bool(self._waiting)

    def __call__(self, source: Iterable[Event]) -> Iterator[Event]:
        """What the pipeline lets through, reshaped; its token must be as it was."""
        advance, end = self._pipeline.advance, self._pipeline.end
        for event in source:
            raw, place = advance(event.raw)
            if raw is None:
                continue
            if place == end and not self._waiting:
                yield _reshaped(event, raw)
                continue
            self._waiting.append(Waiting(event, raw, place))
            self._bytes += len(raw)
            if len(self._waiting) >= BATCH_EVENTS or self._bytes >= BATCH_BYTES:
                yield from self._handed_over()
        yield from self._handed_over()

    def _handed_over(self) -> Iterator[Event]:
        self._bytes = 0
        waiting, end = self._waiting, self._pipeline.end
        for place, group in groupby(list(waiting), key=lambda each: each.place):
            members = list(group)
            found = (
                iter([_reshaped(each.event, each.raw) for each in members])
                if place == end
                else self._evaluated(members, place)
            )
            for event in found:
                while waiting and waiting[0].event is not event:
                    waiting.pop(0)
                waiting.pop(0)
                yield event
        waiting.clear()

    def _evaluated(self, members: list[Waiting], place: int) -> Iterator[Event]:
        """What the server makes of them; one by one when one of them is in its way."""
        try:
            made = self._ask(members, place)
            events = _matched(members, made)
        except ServerError:
            if len(members) == 1:
                raise
            events = None
        if events is not None:
            yield from events
            return
        for each in members:
            for raw in self._ask([each], place):
                yield _reshaped(each.event, raw)

    def _ask(self, members: list[Waiting], place: int) -> list[bytes]:
        elsewhere = self._pipeline.elsewhere
        assert elsewhere is not None, "nobody is there to be asked"  # noqa: S101 - never
        return elsewhere.evaluate(self._pipeline.rest(place), [each.raw for each in members])


def _matched(members: list[Waiting], made: list[bytes]) -> list[Event] | None:
    """Each document under the event whose token it has; None when one has nobody's."""
    events, place = [], 0
    for raw in made:
        while place < len(members) and not _has_token(raw, members[place].event):
            place += 1
        if place == len(members):
            return None
        event = members[place].event
        event.raw = raw
        events.append(event)
        place += 1
    return events


def _reshaped(event: Event, raw: bytes) -> Event:
    if raw is not event.raw:
        check_token(raw, event)
        event.raw = raw
    return event


def _has_token(raw: bytes, event: Event) -> bool:
    span = spans(raw).get(b"_id")
    if span is None:
        return False
    kind, start, end = span
    return element(b"_id", kind, raw[start:end]) == id_element(event.token, event.type_bits)


def check_token(raw: bytes, event: Event) -> None:
    """The error of a pipeline that changed or removed the token."""
    if _has_token(raw, event):
        return
    raise ServerError(
        "Encountered an event whose _id field, which contains the resume token, was modified by "
        "the pipeline. Modifying the _id field of an event makes it impossible to resume the "
        "stream from that point. Only transformations that retain the unmodified _id field are "
        "allowed.",
        code=CHANGE_STREAM_FATAL,
        labels=("NonResumableChangeStreamError",),
    )
