"""Every place in a recorded stream can be gone on from: exactly the rest comes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.support.change_streams import differences
from tests.support.effort import effort
from tests.support.recorded_streams import RecordedStream, longest, token_of

import tailrace
from tailrace.oplog.entry import Entry
from tailrace.stage.match import TRANSACTION_ENDS
from tailrace.token import ResumeToken

LARGE_LOG_BYTES = 1 << 20
MANY_EVENTS = 90
STREAMS = [pytest.param(stream, id=str(stream)) for stream in longest()]


def places(stream: RecordedStream) -> list[int]:
    """Each event's place; a few of them where log or stream is large."""
    count = len(stream.events)
    if count < MANY_EVENTS and len(stream.recording.file("oplog.bson")) < LARGE_LOG_BYTES:
        return list(range(count))
    return sorted(random.Random(7).sample(range(count), min(count, effort(6))))


def check(stream: RecordedStream, rest: list[bytes], **start: Any) -> None:
    difference = differences(stream.replay(**start), rest)
    if difference:
        pytest.fail(f"{stream} from {start}: {difference}")


@pytest.mark.parametrize("stream", STREAMS)
def test_behind_every_token_comes_exactly_the_rest(stream: RecordedStream) -> None:
    events = stream.events
    for place in places(stream):
        check(stream, events[place + 1 :], startAfter=token_of(events[place]))


@pytest.mark.parametrize("stream", STREAMS)
def test_from_a_high_water_mark_comes_all_of_its_time_and_later(stream: RecordedStream) -> None:
    events = stream.events
    tokens = [ResumeToken.parse(token_of(event)) for event in events]
    for place in places(stream)[::3]:
        time = tokens[place].cluster_time
        rest = [
            event for event, token in zip(events, tokens, strict=True) if token.cluster_time >= time
        ]
        mark = ResumeToken.at(time, tokens[place].version)
        check(stream, rest, resumeAfter=mark.document)
        check(stream, rest, startAtOperationTime=mark.timestamp)


def chains(entries: list[Entry]) -> list[tuple[int, int]]:
    """Of each transaction over several entries the first part's place, and the end's time."""
    place = {entry.time: at for at, entry in enumerate(entries)}
    found = []
    for entry in entries:
        ends = entry.command in TRANSACTION_ENDS and not (entry.is_partial or entry.is_prepare)
        first, time = None, entry.previous if ends else None
        while time:
            first, time = place[time], entries[place[time]].previous
        if first is not None:
            found.append((first, entry.time))
    return found


def test_a_transaction_whose_beginning_is_gone_is_history_lost() -> None:
    checked = 0
    for stream in longest():
        raw = stream.entries
        broken = chains([Entry(each) for each in raw])
        for first, _ in broken:
            seen: list[int] = []
            with pytest.raises(tailrace.ServerError) as lost:
                for event in tailrace.replay(
                    b"".join(raw[first + 1 :]),
                    namespace=stream.namespace,
                    server_version=stream.recording.version,
                ):
                    time = event["clusterTime"]
                    seen.append(time.time << 32 | time.inc)
            assert (lost.value.code, lost.value.code_name) == (286, "ChangeStreamHistoryLost")
            ends = [
                end for begins, end in broken if begins <= first and end > Entry(raw[first]).time
            ]
            assert all(time < min(ends) for time in seen), "a part of a transaction was shown"
            checked += 1
    assert checked > 3
