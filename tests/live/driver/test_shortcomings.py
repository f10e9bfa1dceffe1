"""Where PyMongo's stream falls short of its specification, ours does not: one test each.

What needs several nodes is in ``tests/fault/test_driver_members.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bson import Timestamp
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import NotPrimaryError, OperationFailure, PyMongoError
from tests.support.commands_seen import CommandsSeen

import tailrace
from tailrace.embedded import ReplicaSet
from tailrace.errors import OptionError

Base = Database[dict[str, Any]]


@pytest.fixture
def seen() -> CommandsSeen:
    return CommandsSeen()


@pytest.fixture
def watched(mongodb: ReplicaSet, database: Base, seen: CommandsSeen) -> Iterator[Base]:
    with MongoClient[dict[str, Any]](
        mongodb.uri, event_listeners=[seen], heartbeatFrequencyMS=500
    ) as client:
        yield client[database.name]


@pytest.mark.parametrize(
    ("starts", "code"),
    [
        (("resume_after", "start_after"), 50865),
        (("resume_after", "start_at_operation_time"), 40674),
        (("start_after", "start_at_operation_time"), 40674),
    ],
)
def test_contradicting_starts_are_all_sent_and_the_server_refuses_them(
    watched: Base, seen: CommandsSeen, starts: tuple[str, str], code: int
) -> None:
    with tailrace.watch(watched) as stream:
        token = stream.resume_token
    values = {"start_at_operation_time": Timestamp(1, 1)}
    with pytest.raises(OperationFailure) as raised:
        tailrace.watch(watched, **{name: values.get(name, token) for name in starts})
    assert raised.value.code == code
    assert len(seen.stages()[-1]) == 2


def test_a_resume_after_a_network_error_keeps_the_session(
    mongodb: ReplicaSet, watched: Base, seen: CommandsSeen
) -> None:
    with tailrace.watch(watched) as stream:
        broken = {"failCommands": ["getMore"], "closeConnection": True}
        with mongodb.fail_point("failCommand", {"times": 2}, **broken):
            watched.things.insert_one({"_id": 1})
            assert stream.next()["documentKey"] == {"_id": 1}
    assert len(seen.stages()) >= 2
    assert len(seen.sessions()) == 1


def test_no_primary_without_the_label_is_not_resumed(
    mongodb: ReplicaSet, watched: Base, seen: CommandsSeen
) -> None:
    with tailrace.watch(watched) as stream:
        failing = {"failCommands": ["getMore"], "errorCode": 10107}
        with (
            mongodb.fail_point("failCommand", {"times": 1}, **failing),
            pytest.raises(NotPrimaryError),
        ):
            stream.next()
        assert not stream.alive
    assert len(seen.stages()) == 1


def test_a_batch_size_of_one_stays_one(watched: Base, seen: CommandsSeen) -> None:
    with tailrace.watch(watched, batch_size=1) as stream:
        watched.things.insert_many([{}, {}])
        events, _ = stream.next_batch()
        assert len(events) == 1
    assert [
        event.command["batchSize"]
        for event in seen.started_events
        if event.command_name == "getMore"
    ] == [1]


def test_a_call_that_ran_out_of_time_leaves_the_stream_valid(watched: Base) -> None:
    with tailrace.watch(watched, timeout_ms=400) as stream:
        with pytest.raises(PyMongoError) as raised:
            stream.next()
        assert raised.value.timeout
        assert stream.alive
        watched.things.insert_one({"_id": 1})
        assert next_within(stream)["documentKey"] == {"_id": 1}


def next_within(stream: tailrace.ChangeStream, tries: int = 50) -> Any:
    """An event within a few calls: on a busy machine one of them may run out of time again."""
    for _ in range(tries):
        try:
            return stream.next()
        except PyMongoError as error:
            if not error.timeout:
                raise
    raise AssertionError("no event came")


def test_a_server_waits_no_longer_than_asked_within_a_time_out(
    watched: Base, seen: CommandsSeen
) -> None:
    with tailrace.watch(watched, timeout_ms=60_000, max_await_time_ms=30) as stream:
        assert stream.try_next() is None
    (more,) = [e.command for e in seen.started_events if e.command_name == "getMore"]
    assert more["maxTimeMS"] == 30


def test_a_wait_as_long_as_the_time_out_is_refused(watched: Base) -> None:
    with pytest.raises(OptionError) as raised:
        tailrace.watch(watched, timeout_ms=100, max_await_time_ms=100)
    assert raised.value.option == "max_await_time_ms"
