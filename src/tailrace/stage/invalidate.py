"""The end of a stream: what it watches was dropped or renamed.

Behind the event that ends it comes ``invalidate``, and then nothing more. A stream
that starts after an invalidate must not end at once again: the first event that it
sees does not invalidate, unless it is the very one that the token names.

Rules: facts/server-semantics, section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailrace.event.event import Event
from tailrace.event.invalidate import build_invalidate
from tailrace.event.reference import invalidating
from tailrace.stage.options import StreamOptions


class CheckInvalidate:
    """Adds the invalidate event and ends the stream behind it."""

    def __init__(self, options: StreamOptions) -> None:
        self._causes = invalidating(options.scope.kind.value)
        self._shape = options.shape
        client = options.client_token
        after = client is not None and client.from_invalidate
        self._started_after = client.data if client is not None and after else b""
        self.ended = False
        self.last: Event | None = None
        """The event that ended the stream; the user's stages may hide it."""

    def __call__(self, source: Iterable[Event]) -> Iterator[Event]:
        """Pass on all events; take nothing more from the source once the stream ended."""
        if self.ended:
            return
        if not self._causes:
            yield from source
            return
        for event in source:
            if event.operation in self._causes:
                yield from self._invalidating(event)
                if self.ended:
                    return
            else:
                self._started_after = b""
                yield event

    def _invalidating(self, event: Event) -> Iterator[Event]:
        invalidate = build_invalidate(event, self._shape)
        started_after, self._started_after = self._started_after, b""
        if started_after and invalidate.token != started_after:
            yield event
            return
        yield event
        # The one that the client has already seen is found, and swallowed, behind us.
        if not started_after:
            self.last = invalidate
        yield invalidate
        self.ended = not started_after
