"""``$changeStreamSplitLargeEvent``: an event that is too large goes out in fragments.

Fields go into fragments from the smallest to the largest, as many as fit into each, and
every fragment has the event's token with its own number behind it. Whoever resumes
from a fragment gets the ones behind it: the event is made and split again.

Rules: facts/server-semantics, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tailrace.errors import ServerError
from tailrace.event.event import Event, id_element
from tailrace.raw import Span, all_spans, document, element
from tailrace.raw.elements import ARRAY, INT32, OBJECT
from tailrace.stage.resume import not_found, not_split
from tailrace.token import ResumeToken

MAX_BYTES = (16 << 20) + (16 << 10) - (8 << 10)
"""The most that an event and its token may have together."""
FIELD_TOO_LARGE = 7182500
NOTHING_TO_SPLIT = 7182502
_NUMBER_BYTES = 4

Field = tuple[bytes, Span]


class SplitLargeEvents:
    """Replaces an event that is too large by its fragments."""

    def __init__(self, client: ResumeToken | None, *, merged: bool = False) -> None:
        self._resumed = client if client is not None and client.fragment is not None else None
        self._merged = merged
        """Whether sizes count what a merge of shards adds to each event."""

    def __call__(self, source: Iterable[Event]) -> Iterator[Event]:
        """Every event, whole or in fragments; those that a client has already seen are left out."""
        for event in source:
            seen = self._seen(event)
            token_bytes = len(_token(event))
            size = len(event.raw) + (_sort_key_bytes(token_bytes) if self._merged else 0)
            if seen == 0 and size + token_bytes <= MAX_BYTES:
                yield event
                continue
            if size + token_bytes <= MAX_BYTES:
                raise not_split()
            fragments = list(_fragments(event, MAX_BYTES - token_bytes))
            if seen > len(fragments):
                raise not_split()
            for number, fields in enumerate(fragments):
                if number >= seen:
                    yield _fragment(event, number, len(fragments), fields)

    def _seen(self, event: Event) -> int:
        """How many fragments of this event the client has."""
        client = self._resumed
        if client is None or client.fragment is None:
            return 0
        self._resumed = None
        if event.token != client.without_fragment:
            raise not_found()
        return client.fragment + 1


def _fragments(event: Event, most: int) -> Iterator[list[Field]]:
    """The fields of each fragment, the token's aside."""
    fields = sorted(
        (field for field in all_spans(event.raw) if field[0] != b"_id"),
        key=lambda field: (_size(field), field[0]),
    )
    if not fields:
        raise ServerError("cannot split an event without fields", code=NOTHING_TO_SPLIT)
    at = number = 0
    while at < len(fields):
        # The server counts the token twice: it is the fragment's sort key as well.
        head = _head(event, number, 0)
        size = len(head) + 5 + _sort_key_bytes(len(_token(_numbered(event, number))))
        first = at
        while at == first or (at < len(fields) and size + _size(fields[at]) <= most):
            size += _size(fields[at])
            at += 1
        if size > most:
            raise ServerError(
                f"a field of {_size(fields[at - 1])} bytes does not fit into a fragment",
                code=FIELD_TOO_LARGE,
                labels=("NonResumableChangeStreamError",),
            )
        yield fields[first:at]
        number += 1


def _size(field: Field) -> int:
    name, (_, start, end) = field
    return 1 + len(name) + 1 + end - start


def _fragment(event: Event, number: int, count: int, fields: list[Field]) -> Event:
    raw = event.raw
    parts = [element(name, kind, raw[start:end]) for name, (kind, start, end) in fields]
    named = _numbered(event, number)
    return replace(named, raw=document(_head(event, number, count), *parts))


def _numbered(event: Event, number: int) -> Event:
    """The event under the token of one of its fragments."""
    whole = ResumeToken.parse({"_data": event.token.decode(), "_typeBits": event.type_bits})
    token = replace(whole, fragment=number)
    return replace(event, token=token.data, type_bits=token.type_bits)


def _head(event: Event, number: int, count: int) -> bytes:
    """``_id`` and ``splitEvent``, with which every fragment begins."""
    named = _numbered(event, number)
    place = document(
        element(b"fragment", INT32, (number + 1).to_bytes(_NUMBER_BYTES, "little")),
        element(b"of", INT32, count.to_bytes(_NUMBER_BYTES, "little")),
    )
    return id_element(named.token, named.type_bits) + element(b"splitEvent", OBJECT, place)


def _token(event: Event) -> bytes:
    """The token's document."""
    return id_element(event.token, event.type_bits)[len(b"\x03_id\x00") :]


def _sort_key_bytes(token_bytes: int) -> int:
    """What an event's sort key adds to it: its token, in an array."""
    inner = document(element(b"0", OBJECT, bytes(token_bytes)))
    return len(element(b"$sortKey", ARRAY, inner))
