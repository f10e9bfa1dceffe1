"""A driver's stream on a set of three that loses members: it goes on, and soon."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from pymongo.read_preferences import Secondary
from tests.support.commands_seen import CommandsSeen
from tests.support.readers import Numbers
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet

pytestmark = pytest.mark.xdist_group("members")

PROSE = "three nodes"
SOON_S = 5.0
"""How long after an election the first event may take; PyMongo's own stream needs 33 s."""


@pytest.fixture
def name() -> str:
    return f"driver_{uuid.uuid4().hex[:8]}"


class Consumer:
    """Takes events in a thread of its own, and notes when each came."""

    def __init__(self, stream: tailrace.ChangeStream) -> None:
        self.stream = stream
        self.numbers: list[int] = []
        self.times: list[float] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Consumer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self._thread.join(60)

    def _read(self) -> None:
        try:
            for event in self.stream:
                self.numbers.append(event["fullDocument"]["n"])
                self.times.append(time.monotonic())
        except PyMongoError as error:
            self.error = error

    def await_number(self, number: int) -> None:
        eventually(lambda: self.error or number in self.numbers, f"number {number}", 90)
        assert self.error is None, repr(self.error)


def test_events_flow_soon_after_the_primary_was_killed(three: ReplicaSet, name: str) -> None:
    client = three.client()
    numbers = Numbers(client[name])
    with Consumer(tailrace.watch(client[name])) as consumer:
        consumer.await_number(numbers.write())
        killed = three.primary()
        three.kill(killed)
        three.step_up(next(node for node in three.nodes if node is not killed))
        elected = time.monotonic()
        consumer.await_number(numbers.write())
        first = next(at for at in consumer.times if at > elected)
        three.restart(killed)
        assert consumer.numbers == list(range(numbers.count))
    assert first - elected < SOON_S


def test_6_a_resume_selects_a_server_anew_as_its_own_read_preference_says(
    three: ReplicaSet, name: str
) -> None:
    """Prose test 6; and a read preference for one stream, which PyMongo's watch has not."""
    seen = CommandsSeen()
    with MongoClient[dict[str, Any]](three.uri, event_listeners=[seen]) as client:
        numbers = Numbers(client[name])
        with Consumer(tailrace.watch(client[name], read_preference=Secondary())) as consumer:
            consumer.await_number(numbers.write())
            secondaries = {node.address: node for node in three.secondaries()}
            host, port = consumer.stream.address
            holder = secondaries[f"{host}:{port}"]
            three.kill(holder)
            consumer.await_number(numbers.write())
            host, port = consumer.stream.address
            assert f"{host}:{port}" in set(secondaries) - {holder.address}
            three.restart(holder)
            assert consumer.numbers == list(range(numbers.count))
    wanted = [
        event.command["$readPreference"]["mode"]
        for event in seen.started_events
        if event.command_name == "aggregate"
    ]
    assert set(wanted) == {"secondary"}
    assert len(wanted) >= 2


def test_get_more_and_kill_cursors_go_to_the_cursors_server_only(
    three: ReplicaSet, name: str
) -> None:
    seen = CommandsSeen()
    with MongoClient[dict[str, Any]](
        three.uri, event_listeners=[seen], localThresholdMS=10_000
    ) as client:
        for _ in range(10):
            with tailrace.watch(
                client[name], read_preference=Secondary(), max_await_time_ms=10
            ) as stream:
                address = stream.address
                for _ in range(3):
                    stream.try_next()
            asked = {e.connection_id for e in seen.started_events}
            assert asked == {address}
            assert seen.names()[-1] == "killCursors"
            seen.started_events.clear()


def test_a_step_down_is_resumed_without_a_word(three: ReplicaSet, name: str) -> None:
    client = three.client()
    numbers = Numbers(client[name])
    with Consumer(tailrace.watch(client[name])) as consumer:
        consumer.await_number(numbers.write())
        three.step_down(seconds=1)
        consumer.await_number(numbers.write())
        assert consumer.numbers == list(range(numbers.count))
