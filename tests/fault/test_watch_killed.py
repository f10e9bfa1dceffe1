"""``tailrace watch --state`` is killed at any moment: nothing lost, nothing out of order."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database
from tests.support.effort import effort
from tests.support.waiting import eventually
from tests.support.watching import Watch

from tailrace.embedded import ReplicaSet

Base = Database[dict[str, Any]]
KILLS = effort(50)
LANES = 5
"""So many streams are watched, and their watchers killed, at the same time."""
KILLS_IN_A_LANE = -(-KILLS // LANES)
LONGEST_RUN_S = 2.0
"""With five of them on two processors, a start takes the first half of it."""


@contextmanager
def writing(database: Base) -> Iterator[list[int]]:
    """Somebody writes numbered documents all the while; gives how many are written."""
    written = [0]
    leaving = threading.Event()

    def write() -> None:
        while not leaving.is_set():
            first = written[0]
            database.numbers.insert_many([{"_id": at} for at in range(first, first + 20)])
            written[0] = first + 20
            leaving.wait(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield written
    finally:
        leaving.set()
        writer.join()


def numbers(run: Watch) -> list[int]:
    return [int(event["documentKey"]["_id"]["$numberInt"]) for event in run.events()]


def token_of(state: Path) -> str:
    return str(json.loads(state.read_text())["token"]["_data"])


@dataclass
class Lane:
    """One stream that is watched by run after run, each of which but the last is killed."""

    folder: Path
    seed: int
    runs: list[Watch] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    """The token that was stored when each of the runs was killed."""

    def start(self, mongodb: ReplicaSet, database: Base) -> Watch:
        words = ("--namespace", database.name, "--state", str(self.folder / "state.json"))
        self.runs.append(Watch(mongodb.uri, self.folder / f"run{len(self.runs)}", *words))
        return self.runs[-1]

    def run_and_kill(self, mongodb: ReplicaSet, database: Base) -> None:
        state, rng = self.folder / "state.json", random.Random(self.seed)
        for number in range(KILLS_IN_A_LANE):
            run = self.start(mongodb, database)
            if number == 0:
                eventually(state.exists, "the first run stored where it begins")
            with pytest.raises(subprocess.TimeoutExpired):
                run.process.wait(rng.uniform(0, LONGEST_RUN_S))
            run.kill()
            self.places.append(token_of(state))

    def check(self, written: int) -> None:
        """Nothing is lost or out of order; what comes again lies behind the stored place."""
        assert self.places == sorted(self.places), "the stored place went back"
        seen: list[int] = []
        for number, run in enumerate(self.runs):
            mine = numbers(run)
            if not mine:
                continue
            case = f"seed {self.seed}, run {number}"
            assert mine == list(range(mine[0], mine[0] + len(mine))), f"{case}: out of order"
            if seen:
                assert mine[0] <= seen[-1] + 1, f"{case}: something was lost"
                first = run.events()[0]["_id"]["_data"]
                assert first > self.places[number - 1], f"{case}: the stored place was passed over"
            seen += [each for each in mine if not seen or each > seen[-1]]
        assert seen == list(range(seen[0], written))


def test_nothing_is_lost_and_at_most_a_batch_repeated(
    mongodb: ReplicaSet, database: Base, tmp_path: Path
) -> None:
    lanes = [Lane(tmp_path / str(at), random.SystemRandom().getrandbits(32)) for at in range(LANES)]
    for lane in lanes:
        lane.folder.mkdir()
    with writing(database) as written:
        with ThreadPoolExecutor(LANES) as pool:
            for killed in [pool.submit(lane.run_and_kill, mongodb, database) for lane in lanes]:
                killed.result()
        last = [lane.start(mongodb, database) for lane in lanes]
        for run in last:
            eventually(run.events, "the last run goes on")
    for lane, run in zip(lanes, last, strict=True):
        eventually(lambda run=run: numbers(run)[-1] == written[0] - 1, "the last run sees the end")
        assert run.stop() == 0, run.said
        lane.check(written[0])
    assert sum(len(lane.places) for lane in lanes) >= KILLS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_place_stored(
    mongodb: ReplicaSet, database: Base, tmp_path: Path, number: int
) -> None:
    state = tmp_path / "state.json"
    words = ("--namespace", database.name, "--state", str(state))
    first = Watch(mongodb.uri, tmp_path / "first", *words)
    eventually(state.exists, "it is reading")
    database.numbers.insert_many([{"_id": at} for at in range(10)])
    eventually(lambda: len(first.events()) == 10, "all is written out")
    assert first.stop(number) == 0
    assert first.said == ""
    database.numbers.insert_many([{"_id": at} for at in range(10, 20)])
    second = Watch(mongodb.uri, tmp_path / "second", *words)
    eventually(lambda: len(second.events()) == 10, "the rest is written out")
    assert second.stop() == 0
    assert numbers(first) + numbers(second) == list(range(20))
