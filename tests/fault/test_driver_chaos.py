"""Members die, step down and cannot be reached: each profile's consumer sees all of it once."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from tests.support.change_streams import now
from tests.support.effort import effort
from tests.support.readers import MAJORITY
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet

pytestmark = pytest.mark.xdist_group("members")

CHAOS_S = effort(12)
"""A soak makes minutes of it."""
CONSUMERS: dict[str, dict[str, Any]] = {
    "1.5.1": {"resume_policy": "1.5.1"},
    "1.6.0": {"resume_policy": "1.6.0"},
    "current": {"resume_policy": "current"},
    "keep-trying": {"on_error": "keep-trying"},
    "engine": {"engine": "oplog"},
}
Client = MongoClient[dict[str, Any]]


class Consumer:
    """Reads numbers, and opens a new stream from its token whenever one ends with an error."""

    def __init__(self, client: Client, name: str, start: bson.Timestamp, **given: Any) -> None:
        self._watched = client[name]
        self._start: dict[str, Any] = {"start_at_operation_time": start}
        self._given = given
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.numbers: list[int] = []
        self.errors: list[str] = []
        self._thread.start()

    def _read(self) -> None:
        while not self._leaving.is_set():
            try:
                with tailrace.watch(
                    self._watched, max_await_time_ms=200, **self._start, **self._given
                ) as stream:
                    self._take(stream)
            except PyMongoError as error:
                self.errors.append(repr(error)[:200])

    def _take(self, stream: tailrace.ChangeStream) -> None:
        try:
            while not self._leaving.is_set():
                event = stream.try_next()
                if event is not None:
                    self.numbers.append(event["fullDocument"]["n"])
        finally:
            if stream.resume_token is not None:
                self._start = {"start_after": stream.resume_token}

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join(120)


@contextmanager
def writing(client: Client, name: str) -> Iterator[Callable[[], int]]:
    """Somebody writes numbers all the while; gives how many are acknowledged."""
    numbers = client[name].get_collection("numbers", write_concern=MAJORITY)
    leaving = threading.Event()
    written = [0]

    def write() -> None:
        while not leaving.is_set():
            try:
                # The key makes a write that is sent again one write.
                change = {"$setOnInsert": {"n": written[0]}}
                numbers.update_one({"_id": written[0]}, change, upsert=True)
                written[0] += 1
            except PyMongoError:
                leaving.wait(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield lambda: written[0]
    finally:
        leaving.set()
        writer.join()


def kill(three: ReplicaSet, dice: random.Random) -> None:
    node = dice.choice(three.nodes)
    was_primary = node is three.primary()
    three.kill(node)
    if was_primary:
        three.step_up(next(other for other in three.nodes if other is not node))
    three.restart(node)


def step_down(three: ReplicaSet, dice: random.Random) -> None:
    three.step_down(seconds=1)


def cut(three: ReplicaSet, dice: random.Random) -> None:
    with three.hidden(three.primary()):
        threading.Event().wait(dice.uniform(0.2, 1.5))


FAULTS = (kill, step_down, cut)


def test_every_write_is_seen_once_and_in_order_by_every_profile(three: ReplicaSet) -> None:
    seed = random.SystemRandom().getrandbits(32)
    dice, name = random.Random(seed), f"chaos_{uuid.uuid4().hex[:8]}"
    client = three.client(heartbeatFrequencyMS=500)
    start = now(client)
    consumers = {kind: Consumer(client, name, start, **given) for kind, given in CONSUMERS.items()}
    deadline = time.monotonic() + CHAOS_S
    faults = 0
    with writing(client, name) as written:
        while time.monotonic() < deadline:
            dice.choice(FAULTS)(three, dice)
            three.await_members()
            faults += 1
    count = written()
    for kind, consumer in consumers.items():
        eventually(
            lambda consumer=consumer: len(consumer.numbers) >= count,
            f"seed {seed}: {kind} sees all {count}",
            120,
        )
        consumer.leave()
    for kind, consumer in consumers.items():
        assert consumer.numbers == list(range(count)), f"seed {seed}: {kind}"
    assert faults >= 2
    assert count > 0
