"""Where readers meet: room is bounded, whoever waits is let go, errors come last."""

from __future__ import annotations

import threading

import bson
import pytest
from bson import Timestamp
from tests.support.waiting import eventually

from tailrace.engine.sharded.inflow import Inflow
from tailrace.errors import ServerError, SourceLost
from tailrace.event.event import Event
from tailrace.oplog.entry import Entry
from tailrace.token import high_water_mark

EVENT_BYTES = 100
ROOM = 10 * EVENT_BYTES
START = (high_water_mark(1 << 32, 1), b"")


def event(time: int) -> Event:
    entry = Entry(bson.encode({"op": "n", "ns": "", "o": {}, "ts": Timestamp(time, 1)}))
    return Event(b"insert", bytes(EVENT_BYTES), mark(time)[0], b"", entry, 0)


def mark(time: int) -> tuple[bytes, bytes]:
    return high_water_mark((time << 32) + 1, 1), b""


def two_shards() -> Inflow:
    inflow = Inflow(START, ROOM)
    inflow.add("fast", START)
    inflow.add("slow", START)
    return inflow


class Reader(threading.Thread):
    """Puts in one event after the other."""

    def __init__(self, inflow: Inflow, count: int) -> None:
        super().__init__(daemon=True)
        self._inflow, self._count = inflow, count
        self.put = 0
        self.wanted = True

    def run(self) -> None:
        for at in range(self._count):
            self.put = at + 1
            self.wanted = self._inflow.put("fast", [event(10 + at)], mark(11 + at))
            if not self.wanted:
                return


def times(inflow: Inflow) -> list[int]:
    found: list[int] = []
    while taken := inflow.take():
        found += [event.time >> 32 for _, event in taken]
    return found


def test_a_fast_shard_waits_for_room_while_a_slow_one_says_nothing() -> None:
    inflow = two_shards()
    reader = Reader(inflow, 40)
    reader.start()
    eventually(lambda: inflow.waiting("fast")[1] > ROOM, "a full room")
    assert times(inflow) == []
    assert inflow.waiting("fast") == (11, 11 * EVENT_BYTES), "one too many, and no more"
    assert reader.put == 11
    seen: list[int] = []
    inflow.put("slow", [], mark(1000))
    eventually(lambda: seen.extend(times(inflow)) or len(seen) == 40, "all of it")
    assert seen == list(range(10, 50))
    reader.join(10)
    assert not reader.is_alive()


def test_closing_lets_a_reader_go_that_waits_for_room() -> None:
    inflow = two_shards()
    reader = Reader(inflow, 40)
    reader.start()
    eventually(lambda: inflow.waiting("fast")[1] > ROOM, "a full room")
    inflow.close()
    reader.join(10)
    assert not reader.wanted


def test_a_removed_shard_holds_nobody_back_and_is_read_no_more() -> None:
    inflow = two_shards()
    inflow.put("fast", [event(10)], mark(11))
    inflow.remove("slow")
    assert times(inflow) == [10]
    assert not inflow.put("slow", [event(9)], mark(12))
    assert times(inflow) == []


def test_what_failed_is_said_again_and_what_was_lost_only_once() -> None:
    inflow = two_shards()
    inflow.report(SourceLost("away"))
    with pytest.raises(SourceLost):
        inflow.raise_what_waits()
    inflow.raise_what_waits()
    inflow.fail(ServerError("gone", code=286))
    inflow.fail(ServerError("another", code=280))
    for _ in range(2):
        with pytest.raises(ServerError) as failed:
            inflow.raise_what_waits()
        assert failed.value.code == 286


def test_only_shards_behind_what_waits_are_to_be_moved_on() -> None:
    inflow = Inflow(START)
    for name in ("ahead", "behind", "silent"):
        inflow.add(name, START)
    assert inflow.wait_until_held_back(0) is None, "nothing waits"
    inflow.put("ahead", [event(10), event(20)], mark(21))
    inflow.put("behind", [], mark(15))
    held = inflow.wait_until_held_back(0)
    assert held is not None
    assert held.until >> 32 == 20
    assert held.witness == "ahead"
    assert held.behind == ("behind", "silent")
    inflow.put("silent", [], mark(30))
    inflow.put("behind", [], mark(30))
    assert inflow.wait_until_held_back(0) is None
    assert times(inflow) == [10, 20]
