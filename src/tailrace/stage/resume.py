"""Going on after a token: everything up to it is swallowed, and it must be there.

Tokens are compared by their bytes, which is stream order. An event that lies behind
the token before the token itself was met means that the stream cannot go on from
there. A high-water mark names a time, not an event: nothing is swallowed.

Rules: facts/server-semantics, section 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailrace.errors import ServerError
from tailrace.event.event import Event
from tailrace.oplog.entry import Entry
from tailrace.raw import spans, text_of
from tailrace.raw.elements import STRING
from tailrace.token import ResumeToken

CHANGE_STREAM_FATAL = 280
HISTORY_LOST = 286
FIRST_ENTRY_EVER = b"initiating set"


class CheckResumability:
    """Swallows what lies before the token, ahead of the stages that cost something."""

    def __init__(self, client: ResumeToken) -> None:
        self._wanted = client.without_fragment
        self._passed = False

    def __call__(self, source: Iterable[Event]) -> Iterator[Event]:
        """Pass on everything from the token's own event (or what surpassed it) on."""
        for event in source:
            if not self._passed:
                if event.token < self._wanted:
                    continue
                self._passed = True
            yield event


class EnsureToken:
    """Swallows the event of the token, which must come before all that lies behind it.

    Shards that ran the same command give the same token: each of its copies is
    swallowed. A token of a fragment is only met by its event here: the stage that
    splits events swallows the fragments, and must be there.
    """

    def __init__(self, client: ResumeToken, *, splits: bool = False) -> None:
        self._wanted = client.without_fragment
        self._needs_split = client.fragment is not None
        self._splits = splits
        self._found = self._passed = False

    def __call__(self, source: Iterable[Event]) -> Iterator[Event]:
        """Pass on what lies behind the token; an error when it is not in the stream."""
        for event in source:
            if self._passed:
                yield event
            elif event.token == self._wanted:
                self._found = True
                if self._needs_split:
                    if not self._splits:
                        raise not_split()
                    yield event
            elif event.token > self._wanted:
                if not self._found:
                    raise not_found()
                self._passed = True
                yield event


def not_found() -> ServerError:
    """The error of a stream whose token is not in it."""
    return ServerError(
        "cannot resume stream; the resume token was not found",
        code=CHANGE_STREAM_FATAL,
        labels=("NonResumableChangeStreamError",),
    )


def not_split() -> ServerError:
    """The error of a token of a fragment, where the event is not split so."""
    return ServerError(
        "Attempted to resume from a split event, but the resumed stream produced a different "
        "split. Ensure that the pipeline used to resume is the same as the original",
        code=CHANGE_STREAM_FATAL,
        labels=("NonResumableChangeStreamError",),
    )


def check_history(oldest: bytes, start: int) -> None:
    """Whether a log that begins with this entry reaches back to a start time."""
    entry = Entry(oldest)
    if entry.time <= start or _is_birth(entry):
        return
    raise ServerError(
        "Resume of change stream was not possible, as the resume point may no longer be in "
        "the oplog.",
        code=HISTORY_LOST,
        labels=("NonResumableChangeStreamError",),
        oldest=entry.time,
        start=start,
    )


def _is_birth(entry: Entry) -> bool:
    """Whether the replica set began with this entry, so that nothing can be missing."""
    o = entry.sub_document(b"o")
    if entry.op != b"n" or o is None:
        return False
    said = spans(o)
    return (
        list(said) == [b"msg"]
        and said[b"msg"][0] == STRING
        and text_of(o, said[b"msg"]) == FIRST_ENTRY_EVER
    )
