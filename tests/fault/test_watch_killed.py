"""``tailrace watch --state`` is killed at any moment: nothing lost, nothing out of order."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database
from tests.support.effort import effort
from tests.support.waiting import eventually
from tests.support.watching import Watch

from tailrace.embedded import ReplicaSet

Base = Database[dict[str, Any]]
KILLS = effort(6)
LONGEST_RUN_S = 2.0


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


def test_nothing_is_lost_and_at_most_a_batch_repeated(
    mongodb: ReplicaSet, database: Base, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    state = tmp_path / "state.json"
    words = ("--namespace", database.name, "--state", str(state))
    runs: list[Watch] = []
    places: list[str] = []
    with writing(database) as written:
        for number in range(KILLS):
            run = Watch(mongodb.uri, tmp_path / f"run{number}", *words)
            runs.append(run)
            if number == 0:
                eventually(state.exists, "the first run stored where it begins")
            with pytest.raises(subprocess.TimeoutExpired):
                run.process.wait(rng.uniform(0, LONGEST_RUN_S))
            run.kill()
            places.append(token_of(state))
        last = Watch(mongodb.uri, tmp_path / "last", *words)
        runs.append(last)
        eventually(last.events, "the last run goes on")
    eventually(lambda: numbers(last)[-1] == written[0] - 1, "the last run sees the end")
    assert last.stop() == 0, last.said
    assert places == sorted(places), "the stored place went back"
    seen: list[int] = []
    for number, run in enumerate(runs):
        mine = numbers(run)
        if not mine:
            continue
        case = f"seed {seed}, run {number}"
        assert mine == list(range(mine[0], mine[0] + len(mine))), f"{case}: out of order"
        if seen:
            assert mine[0] <= seen[-1] + 1, f"{case}: something was lost"
            # What comes again is what lies behind the stored place, and no more.
            first = run.events()[0]["_id"]["_data"]
            assert first > places[number - 1], f"{case}: the stored place was passed over"
        seen += [each for each in mine if not seen or each > seen[-1]]
    assert seen == list(range(seen[0], written[0]))


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
