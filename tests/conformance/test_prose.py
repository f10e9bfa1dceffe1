"""The prose tests of today's specification, by their numbers, on the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient, WriteConcern
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import OperationFailure, PyMongoError
from tests.support.commands_seen import CommandsSeen
from tests.support.unified import version_tuple
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet

Base = Database[dict[str, Any]]
Watched = Collection[dict[str, Any]]
PROSE = "server"
MAJORITY = WriteConcern("majority")
CURSOR_NOT_FOUND = {"failCommands": ["getMore"], "errorCode": 43}


@pytest.fixture
def seen() -> CommandsSeen:
    return CommandsSeen()


@pytest.fixture
def things(mongodb: ReplicaSet, database: Base, seen: CommandsSeen) -> Iterator[Watched]:
    """A collection of a client that is listened to."""
    database.create_collection("things")
    with MongoClient[dict[str, Any]](mongodb.uri, event_listeners=[seen]) as client:
        yield client[database.name].get_collection("things", write_concern=MAJORITY)


def kill(things: Watched, stream: tailrace.ChangeStream) -> None:
    """Have the server forget a stream's cursor, as an operator would."""
    things.database.command("killCursors", things.name, cursors=[stream.cursor_id])


def a_token(things: Watched) -> Any:
    with tailrace.watch(things) as stream:
        things.insert_one({})
        return stream.next()["_id"]


def test_1_the_token_follows_every_event_and_batch(things: Watched, seen: CommandsSeen) -> None:
    with tailrace.watch(things) as stream:
        assert stream.resume_token == seen.batch_token()
        for _ in range(3):
            things.insert_one({})
            event = stream.next()
            expected = event["_id"] if stream.buffered else seen.batch_token()
            assert stream.resume_token == expected


def test_2_a_missing_token_raises_and_closes(things: Watched) -> None:
    with tailrace.watch(things, [{"$project": {"_id": 0}}]) as stream:
        things.insert_one({})
        with pytest.raises(OperationFailure) as raised:
            stream.next()
        assert raised.value.code == 280
        assert not stream.alive
        with pytest.raises(StopIteration):
            stream.next()


def test_3_a_resume_differs_from_the_start_by_its_token_only(
    mongodb: ReplicaSet, things: Watched, seen: CommandsSeen
) -> None:
    pipeline = [{"$match": {"operationType": "insert"}}]
    given = {"full_document": "updateLookup", "batch_size": 7, "comment": "three"}
    with tailrace.watch(things, pipeline, **given) as stream:
        things.insert_one({"_id": 1})
        stream.next()
        with mongodb.fail_point("failCommand", {"times": 1}, **CURSOR_NOT_FOUND):
            things.insert_one({"_id": 2})
            assert stream.next()["documentKey"] == {"_id": 2}
    first, second = (e.command for e in seen.started_events if e.command_name == "aggregate")
    assert second["pipeline"][0]["$changeStream"].pop("resumeAfter")
    for name in ("pipeline", "cursor", "comment", "lsid"):
        assert first[name] == second[name]


def test_4_an_error_of_the_aggregate_is_never_resumed(
    mongodb: ReplicaSet, things: Watched, seen: CommandsSeen
) -> None:
    failing = {"failCommands": ["aggregate"], "errorCode": 2}
    with (
        mongodb.fail_point("failCommand", {"times": 1}, **failing),
        pytest.raises(OperationFailure),
    ):
        tailrace.watch(things)
    assert seen.names() == ["aggregate"]


def test_7_an_empty_first_batch_leaves_the_cursor_open(things: Watched) -> None:
    with tailrace.watch(things) as stream:
        assert stream.buffered == 0
        number = stream.cursor_id
        assert number
        things.insert_one({})
        stream.next()
        assert stream.cursor_id == number


@pytest.mark.parametrize("how", [{"errorCode": 13}, {"closeConnection": True}])
def test_8_a_failing_kill_cursors_is_nobodys_business(
    mongodb: ReplicaSet, things: Watched, seen: CommandsSeen, how: dict[str, Any]
) -> None:
    with tailrace.watch(things, max_await_time_ms=100) as stream:
        things.insert_one({"_id": 1})
        stream.next()
        labelled = {"errorCode": 6, "errorLabels": ["ResumableChangeStreamError"]}
        failing = {"failCommands": ["killCursors"], **how}
        with (
            mongodb.fail_point("failGetMoreAfterCursorCheckout", {"times": 1}, **labelled),
            mongodb.fail_point("failCommand", "alwaysOn", **failing),
        ):
            things.insert_one({"_id": 2})
            assert stream.next()["documentKey"] == {"_id": 2}
            assert "killCursors" in seen.names()


def test_11_an_empty_or_exhausted_batch_shows_its_own_token(
    things: Watched, seen: CommandsSeen
) -> None:
    with tailrace.watch(things, max_await_time_ms=100) as stream:
        assert stream.try_next() is None
        assert stream.resume_token == seen.batch_token()
        things.insert_many([{} for _ in range(3)])
        eventually(lambda: stream.try_next() and not stream.buffered, "the batch is at its end")
        assert stream.resume_token == seen.batch_token()


def test_13_a_batch_in_the_middle_shows_the_last_event(things: Watched) -> None:
    with tailrace.watch(things) as stream:
        things.insert_many([{} for _ in range(3)])
        things.insert_many([{} for _ in range(3)])
        event = stream.next()
        assert stream.buffered
        assert stream.resume_token == event["_id"]


@pytest.mark.parametrize("option", ["resume_after", "start_after"])
def test_14_an_untouched_first_batch_shows_the_start(things: Watched, option: str) -> None:
    token = a_token(things)
    things.insert_many([{"a": 1}, {"b": 2}])
    with tailrace.watch(things, **{option: token}) as stream:
        assert stream.buffered
        assert stream.resume_token == token


@pytest.mark.parametrize(
    ("events", "used"), [(0, "startAfter"), (1, "resumeAfter")], ids=["17", "18"]
)
def test_17_and_18_a_resume_starts_after_until_an_event_was_seen(
    things: Watched, seen: CommandsSeen, events: int, used: str
) -> None:
    token = a_token(things)
    with tailrace.watch(things, start_after=token, max_await_time_ms=100) as stream:
        if events:
            things.insert_one({})
            stream.next()
        assert stream.try_next() is None
        kill(things, stream)
        stream.try_next()
    assert [used] == [name for name in seen.stages()[-1] if name != "fullDocument"]


def test_19_a_large_event_comes_in_fragments(mongodb: ReplicaSet, database: Base) -> None:
    version = version_tuple(mongodb.version)
    if not ((6, 0, 9) <= version < (6, 1, 0) or version >= (7, 0, 0)):
        pytest.skip(f"{mongodb.version} cannot split events: the fake does, in test_fake_prose")
    images = {"enabled": True}
    large = database.create_collection("large", changeStreamPreAndPostImages=images)
    large.insert_one({"_id": 1, "value": "q" * 10 * 1024 * 1024})
    stages = [{"$changeStreamSplitLargeEvent": {}}]
    with tailrace.watch(large, stages, full_document_before_change="required") as stream:
        large.update_one({"_id": 1}, {"$set": {"value": "z" * 10 * 1024 * 1024}})
        assert stream.next()["splitEvent"] == {"fragment": 1, "of": 2}
        between = stream.resume_token
        assert stream.next()["splitEvent"] == {"fragment": 2, "of": 2}
    given = {"full_document_before_change": "required", "resume_after": between}
    with tailrace.watch(large, stages, **given) as stream:
        assert stream.next()["splitEvent"] == {"fragment": 2, "of": 2}


def test_a_killed_cursor_is_resumed_as_one_that_was_not_found(things: Watched) -> None:
    with tailrace.watch(things, max_await_time_ms=100) as stream:
        things.insert_one({"_id": 1})
        stream.next()
        kill(things, stream)
        things.insert_one({"_id": 2})
        assert stream.next()["documentKey"] == {"_id": 2}


@pytest.mark.parametrize("stages", [[{"$unsupported": 1}], [{"$changeStream": {}}]])
def test_what_is_wrong_with_a_pipeline_the_server_says(
    things: Watched, stages: list[dict[str, Any]]
) -> None:
    with pytest.raises(PyMongoError) as raised:
        tailrace.watch(things, stages)
    assert isinstance(raised.value, OperationFailure)


def test_a_read_concern_is_the_servers_to_refuse(things: Watched) -> None:
    from pymongo.read_concern import ReadConcern

    with pytest.raises(OperationFailure):
        tailrace.watch(things.with_options(read_concern=ReadConcern("local")))
    with tailrace.watch(things.with_options(read_concern=ReadConcern("majority"))) as stream:
        assert stream.alive
