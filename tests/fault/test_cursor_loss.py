"""The log's cursor is lost at any step: reading goes on behind the last entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database
from tests.support.readers import Numbers, Reader
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet

Base = Database[dict[str, Any]]
Client = MongoClient[dict[str, Any]]
AWAIT_MS = 50
OPLOG = "local.oplog.rs"

FAULTS: dict[str, dict[str, Any]] = {
    "the cursor is not found": {"failCommands": ["getMore"], "errorCode": 43},
    "the capped position is lost": {"failCommands": ["getMore"], "errorCode": 136},
    "the cursor is killed": {"failCommands": ["getMore"], "errorCode": 237},
    "the operation is interrupted": {"failCommands": ["getMore"], "errorCode": 11601},
    "the server steps down": {"failCommands": ["getMore"], "errorCode": 11602},
    "the connection breaks": {"failCommands": ["getMore"], "closeConnection": True},
    "the connection breaks while reopening": {
        "failCommands": ["getMore", "find"],
        "closeConnection": True,
    },
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("times", [1, 3])
def test_nothing_is_lost_or_repeated_when(
    mongodb: ReplicaSet, mongodb_client: Client, database: Base, fault: str, times: int
) -> None:
    numbers = Numbers(database)
    stream = tailrace.open_oplog(mongodb_client, database.name, max_await_ms=AWAIT_MS)
    with Reader(stream) as reader:
        reader.await_number(numbers.write())
        data = {"namespace": OPLOG, **FAULTS[fault]}
        with mongodb.fail_point("failCommand", {"times": times}, **data):
            reader.await_number(numbers.write())
        reader.await_number(numbers.write())
        reader.check_complete(numbers.count)


def test_a_look_up_that_fails_in_a_batch_is_asked_again(
    mongodb: ReplicaSet, mongodb_client: Client, database: Base
) -> None:
    collection = database.create_collection("kept", changeStreamPreAndPostImages={"enabled": True})
    collection.insert_one({"_id": 1})
    options = {"fullDocumentBeforeChange": "required"}
    with tailrace.open_oplog(
        mongodb_client, database.name, options=options, max_await_ms=AWAIT_MS
    ) as stream:
        for at in range(5):
            collection.update_one({"_id": 1}, {"$set": {"at": at}})
        broken = {"failCommands": ["find"], "closeConnection": True}
        with mongodb.fail_point(
            "failCommand", {"times": 3}, namespace="config.system.preimages", **broken
        ):
            events: list[bytes] = []
            eventually(
                lambda: events.extend(stream.next_batch()[0]) or len(events) >= 5,
                "all events are seen",
            )
        assert len(events) == 5


def test_a_stream_whose_look_ups_had_no_answer_can_be_read_on(
    mongodb: ReplicaSet, database: Base
) -> None:
    client = mongodb.client(serverSelectionTimeoutMS=200)
    images = {"enabled": True}
    collection = client[database.name].create_collection(
        "kept", changeStreamPreAndPostImages=images
    )
    collection.insert_many([{"_id": at} for at in range(4)])
    options = {"fullDocumentBeforeChange": "required"}
    broken = {"failCommands": ["find"], "closeConnection": True}
    events: list[bytes] = []
    with tailrace.open_oplog(
        client, database.name, options=options, max_await_ms=AWAIT_MS
    ) as stream:
        with client.start_session() as session, session.start_transaction():
            for at in range(4):
                collection.update_one({"_id": at}, {"$set": {"at": at}}, session=session)
        eventually(lambda: len(events) < 2 and _take(stream, events, 2), "half is seen")
        with (
            mongodb.fail_point("failCommand", namespace="config.system.preimages", **broken),
            pytest.raises(tailrace.TailraceError) as raised,
        ):
            stream.next_batch()
        assert type(raised.value).__name__ == "SourceLost"
        assert stream.alive
        eventually(lambda: _take(stream, events, None), "the rest is seen")
    assert len(events) == len(set(events)) == 4


def _take(stream: tailrace.OplogStream, events: list[bytes], at_most: int | None) -> bool:
    events += stream.next_batch(max_events=at_most)[0]
    return len(events) >= (at_most or 4)


def test_a_server_that_is_away_is_reported_and_its_restart_survived(
    start_replica_set: Callable[..., ReplicaSet],
) -> None:
    replica_set = start_replica_set()
    node = replica_set.nodes[0]
    client = replica_set.client()
    numbers = Numbers(client.numbered)
    hasty = replica_set.client(serverSelectionTimeoutMS=300)
    with (
        Reader(tailrace.open_oplog(client, "numbered", max_await_ms=AWAIT_MS)) as patient,
        tailrace.open_oplog(hasty, "numbered", max_await_ms=AWAIT_MS) as stream,
    ):
        patient.await_number(numbers.write())
        assert len(stream.next_batch()[0]) == numbers.count
        replica_set.kill(node)
        with pytest.raises(tailrace.TailraceError) as raised:
            for _ in range(100):
                stream.next_batch()
        assert type(raised.value).__name__ == "SourceLost"
        assert stream.alive
        replica_set.restart(node)
        replica_set.await_members()
        events: list[bytes] = []
        patient.await_number(numbers.write())
        patient.check_complete(numbers.count)
        eventually(
            lambda: events.extend(stream.next_batch()[0]) or len(events) >= 5, "it is read on"
        )
    assert len(events) == len(set(events)) == 5
