"""Entries become events; their bytes are final from here on.

A stream that resumes after a token of another version keeps that version up to the
token, and goes on in the server's own (or the newer of the two) behind it.

Rules: facts/server-semantics, sections 2.2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailrace.event.build import build
from tailrace.event.event import Event
from tailrace.event.mould import Moulds
from tailrace.event.reference import CLASSIC
from tailrace.oplog.entry import Entry
from tailrace.stage.options import StreamOptions


class Transform:
    """Builds the event of each entry."""

    def __init__(self, options: StreamOptions) -> None:
        shape, client = options.shape, options.client_token
        default = shape.token_version
        self._until = (-1, -1)
        self._before = None
        if client is not None and not client.is_high_water_mark:
            if client.version != default:
                self._before = Moulds(shape, client.version)
                self._until = (client.cluster_time, client.index)
            default = max(default, client.version)
        self._moulds = Moulds(shape, default)

    def __call__(self, source: Iterable[Entry]) -> Iterator[Event]:
        """One event for each entry, in the same order."""
        moulds = self._moulds
        if self._before is None:
            for entry in source:
                yield build(entry, moulds)
            return
        for entry in source:
            index = entry.place.index if entry.place else 0
            old = entry.time == self._until[0] and index <= self._until[1]
            yield build(entry, self._before if old else moulds)


def only_classic(source: Iterable[Event]) -> Iterator[Event]:
    """Drop the events that only ``showExpandedEvents`` shows."""
    return (event for event in source if event.operation in CLASSIC or event.is_control)
