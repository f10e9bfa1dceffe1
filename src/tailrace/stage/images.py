"""Images of a document: before the change, after it, and as it is now.

A pre-image is kept by the server under the collection's UUID and the place of the
operation in the log; a prepared transaction's under the prepare entry's. A post-image
is the pre-image with the update applied, as the server computes it. A look-up reads
the document as it is at the event's time or later: it may be newer, or gone.

Rules: facts/server-semantics, section 3.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailrace.errors import ServerError
from tailrace.event.event import Event
from tailrace.oplog.deltas import apply_diff
from tailrace.oplog.entry import Entry
from tailrace.raw import spans
from tailrace.raw.elements import OBJECT
from tailrace.stage.lookups import Lookups
from tailrace.stage.options import LOOKUP, REQUIRED, WHEN_AVAILABLE, StreamOptions

NO_MATCHING_DOCUMENT = 47
HISTORY_LOST = 286
NO_IMAGE_NAMED = 51770
WITH_PRE_IMAGE = frozenset((b"update", b"replace", b"delete"))


class AddImages:
    """Adds ``fullDocumentBeforeChange`` and the ``fullDocument`` of updates."""

    def __init__(self, options: StreamOptions, lookups: Lookups) -> None:
        self._before = options.before_change
        self._after = options.full_document
        self._in_log = options.shape.images_in_log
        self._lookups = lookups

    @classmethod
    def wanted(cls, options: StreamOptions) -> bool:
        """Whether a stream of these options shows any image."""
        return options.full_document in (
            LOOKUP,
            WHEN_AVAILABLE,
            REQUIRED,
        ) or options.before_change in (WHEN_AVAILABLE, REQUIRED)

    def __call__(self, source: Iterable[Event]) -> Iterator[Event]:
        """The same events, with their images."""
        shows_before = self._before in (WHEN_AVAILABLE, REQUIRED)
        add_before = self._add_logged if self._in_log else self._add_kept
        for event in source:
            if event.operation in WITH_PRE_IMAGE and event.key is not None:
                before = add_before(event) if shows_before else None
                if event.operation == b"update":
                    self._add_after(event, before)
            yield event

    def _add_kept(self, event: Event) -> bytes | None:
        before = self._kept(event)
        if before is None and self._before == REQUIRED:
            raise _missing("pre-image for all update, delete and replace events", "pre-image")
        event.with_before_image(before)
        return before

    def _add_logged(self, event: Event) -> None:
        """Before 6.0 an entry names the no-op entry that holds its image, or shows none."""
        entry = event.entry
        named = entry.sub_document(b"preImageOpTime")
        if named is None:
            if self._before == REQUIRED:
                raise ServerError(
                    "Change stream was configured to require a pre-image for all update, delete "
                    "and replace events, but no pre-image optime was recorded for event",
                    code=NO_IMAGE_NAMED,
                )
            return
        _, start, end = spans(named)[b"ts"]
        raw = self._lookups.entry(int.from_bytes(named[start:end], "little"))
        if raw is None and self._before == REQUIRED:
            raise ServerError(
                "Change stream was configured to require a pre-image for all update, delete and "
                "replace events, but the pre-image was not found in the oplog for event",
                code=HISTORY_LOST,
                labels=("NonResumableChangeStreamError",),
            )
        before = Entry(raw).sub_document(b"o") if raw else None
        event.with_before_image(before, at_the_end=False)

    def _add_after(self, event: Event, before: bytes | None) -> None:
        if self._after == LOOKUP:
            entry = event.entry
            key, uuid = event.key or b"", entry.uuid or b""
            event.with_full_document(self._lookups.document(entry.namespace, uuid, key, entry.time))
        elif self._after in (WHEN_AVAILABLE, REQUIRED):
            before = self._kept(event) if before is None else before
            if before is None and self._after == REQUIRED:
                raise _missing("post-image for all update events", "post-image")
            event.with_full_document(None if before is None else _updated(before, event.entry))

    def _kept(self, event: Event) -> bytes | None:
        entry = event.entry
        place, uuid = entry.place, entry.uuid
        time, index = (place.apply_time, place.apply_index) if place else (entry.time, 0)
        return self._lookups.pre_image(uuid, time, index) if uuid else None


def _updated(before: bytes, entry: Entry) -> bytes:
    kind, start, end = entry.body.get(b"diff", (0, 0, 0))
    return apply_diff(before, entry.raw[start:end]) if kind == OBJECT else before


def _missing(what: str, which: str) -> ServerError:
    return ServerError(
        f"Change stream was configured to require a {what}, but the {which} was not found",
        code=NO_MATCHING_DOCUMENT,
        labels=("NonResumableChangeStreamError",),
    )
