"""However the shards' batches come in, one sorted stream leaves, and nothing leaves early."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import effort

from tailrace.errors import ProtocolError
from tailrace.router import Merge

LAST = b"~"
"""Behind every token of a test."""


@dataclass(frozen=True)
class Event:
    """What the merge knows of an event."""

    token: bytes
    shard: str
    number: int
    type_bits: bytes = b""


@dataclass
class Shard:
    """A shard's events that were not read yet, in order."""

    name: str
    rest: list[Event]
    promise: bytes = b""

    def batch(self, size: int, ahead: int) -> tuple[list[Event], bytes]:
        """The next events, and a promise at or behind them and not beyond the next one."""
        taken, self.rest = self.rest[:size], self.rest[size:]
        following = self.rest[0].token if self.rest else LAST
        at_least = taken[-1].token if taken else self.promise
        steps = [at_least, between(at_least, following), following]
        self.promise = max(self.promise, steps[ahead])
        return taken, self.promise


def between(lower: bytes, upper: bytes) -> bytes:
    middle = lower + b"!"
    return middle if middle < upper else lower


TOKENS = st.integers(0, 40).map(lambda number: b"%02d" % number)
SHARDS = st.lists(st.lists(TOKENS, max_size=15), min_size=1, max_size=5)


def shards_of(tokens: list[list[bytes]]) -> list[Shard]:
    return [
        Shard(f"s{at}", [Event(token, f"s{at}", n) for n, token in enumerate(sorted(each))])
        for at, each in enumerate(tokens)
    ]


@settings(max_examples=effort(30))
@given(SHARDS, st.data())
def test_one_sorted_stream_leaves_whole_and_never_early(
    tokens: list[list[bytes]], data: st.DataObject
) -> None:
    shards = shards_of(tokens)
    expected = sorted(event.token for shard in shards for event in shard.rest)
    merge: Merge[Event] = Merge((b"", b""))
    for shard in shards:
        merge.add(shard.name, (b"", b""))
    left: list[Event] = []
    while open_ones := [shard for shard in shards if shard.rest]:
        shard = data.draw(st.sampled_from(open_ones))
        events, promise = shard.batch(data.draw(st.integers(0, 4)), data.draw(st.integers(0, 2)))
        merge.feed(shard.name, events, (promise, b""))
        before = merge.position
        out = [event for _, event in merge.ready()]
        floor = min(each.promise for each in shards)
        assert all(event.token <= floor for event in out)
        assert all(event.token >= before[0] for event in out), "a place ran ahead of its events"
        left += out
        assert merge.position[0] >= before[0], "the place went back"
        assert merge.position[0] >= (left[-1].token if left else b"")
        assert merge.position[0] == max(floor, left[-1].token if left else b"")
    for shard in shards:
        merge.end(shard.name)
    left += [event for _, event in merge.ready()]
    assert [event.token for event in left] == expected
    for shard in shards:
        numbers = [event.number for event in left if event.shard == shard.name]
        assert numbers == sorted(numbers), "a shard's own order was lost"
    assert merge.awaited is None


@settings(max_examples=effort(40))
@given(st.lists(TOKENS, min_size=1, max_size=15), st.lists(TOKENS, max_size=15), TOKENS)
def test_a_shard_that_joins_holds_back_from_its_promise_on(
    old: list[bytes], new: list[bytes], joined: bytes
) -> None:
    new = sorted(token for token in new if token >= joined)
    merge: Merge[Event] = Merge((b"", b""))
    merge.add("old", (b"", b""))
    events = [Event(token, "old", at) for at, token in enumerate(sorted(old))]
    merge.feed("old", events, (LAST, b""))
    left: list[bytes] = []
    is_in = False
    for _, event in merge.ready():
        left.append(event.token)
        if event.token >= joined and not is_in:
            is_in = True
            behind = [token for token in new if token >= event.token]
            merge.add("new", (event.token, b""))
            merge.feed("new", [Event(token, "new", 0) for token in behind], (LAST, b""))
            new = behind
    assert left == sorted([*old, *(new if is_in else [])])


def test_what_was_promised_cannot_be_taken_back() -> None:
    merge: Merge[Event] = Merge((b"", b""))
    merge.add("a", (b"05", b""))
    with pytest.raises(ProtocolError):
        merge.feed("a", [], (b"04", b""))
