"""A set of three loses members: no event is lost, repeated or undone, whoever is read."""

from __future__ import annotations

import shutil
import uuid
from typing import Any

import bson
import pytest
from pymongo import MongoClient, WriteConcern
from pymongo.errors import OperationFailure
from pymongo.monitoring import CommandListener, CommandStartedEvent
from pymongo.read_preferences import Secondary
from tests.support.change_streams import now, settle
from tests.support.readers import Numbers, Reader
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet

pytestmark = pytest.mark.xdist_group("members")

Client = MongoClient[dict[str, Any]]
AWAIT_MS = 100


@pytest.fixture
def name() -> str:
    return f"fault_{uuid.uuid4().hex[:8]}"


def open_stream(client: Client, name: str, **options: Any) -> tailrace.OplogStream:
    return tailrace.open_oplog(client, name, max_await_ms=AWAIT_MS, **options)


def test_a_stream_goes_on_when_the_primary_steps_down(three: ReplicaSet, name: str) -> None:
    client = three.client()
    numbers = Numbers(client[name])
    with Reader(open_stream(client, name)) as reader:
        reader.await_number(numbers.write())
        three.step_down(seconds=1)
        reader.await_number(numbers.write())
        reader.check_complete(numbers.count)


def test_a_stream_goes_on_when_the_primary_is_killed(three: ReplicaSet, name: str) -> None:
    client = three.client()
    numbers = Numbers(client[name])
    with Reader(open_stream(client, name)) as reader:
        reader.await_number(numbers.write())
        killed = three.primary()
        three.kill(killed)
        three.step_up(next(node for node in three.nodes if node is not killed))
        reader.await_number(numbers.write())
        three.restart(killed)
        reader.await_number(numbers.write())
        reader.check_complete(numbers.count)


class ServersAsked(CommandListener):
    """Which servers were asked for entries."""

    def __init__(self) -> None:
        self.addresses: set[str] = set()

    def started(self, event: CommandStartedEvent) -> None:
        if (
            event.command_name in ("find", "getMore", "aggregate")
            and event.database_name == "local"
        ):
            host, port = event.connection_id
            self.addresses.add(f"{host}:{port}")

    def succeeded(self, event: object) -> None: ...

    def failed(self, event: object) -> None: ...


def test_a_stream_reads_secondaries_and_survives_the_loss_of_one(
    three: ReplicaSet, name: str
) -> None:
    asked = ServersAsked()
    client = three.client(event_listeners=[asked], readPreference="secondary")
    numbers = Numbers(three.client()[name])
    with Reader(open_stream(client, name)) as reader:
        reader.await_number(numbers.write())
        secondaries = {node.address: node for node in three.secondaries()}
        assert asked.addresses <= set(secondaries)
        killed = secondaries[next(iter(asked.addresses))]
        three.kill(killed)
        reader.await_number(numbers.write())
        three.restart(killed)
        reader.check_complete(numbers.count)
    assert three.primary().address not in asked.addresses


def test_an_entry_that_is_rolled_back_never_comes_out(three: ReplicaSet, name: str) -> None:
    client = three.client()
    numbers = Numbers(client[name])
    numbers.write(1)
    old = three.primary()
    with (
        old.direct(readPreference="primaryPreferred") as direct,
        Reader(open_stream(client, name)) as of_the_set,
        Reader(open_stream(direct, name)) as of_the_old,
    ):
        last = numbers.write(3)
        of_the_set.await_number(last)
        of_the_old.await_number(last)
        three.cut_off(old)
        lost = direct[name].get_collection("numbers", write_concern=WriteConcern(1))
        lost.insert_one({"_id": "lost", "n": -1})
        assert direct[name].numbers.find_one({"_id": "lost"})
        last = numbers.write(3)
        of_the_set.await_number(last)
        three.heal(old)
        of_the_old.await_number(last)
        assert of_the_set.numbers() == list(range(1, numbers.count))
        assert of_the_old.numbers() == list(range(1, numbers.count))


def test_a_member_that_lost_the_place_says_so_as_its_server_does(
    three: ReplicaSet, name: str
) -> None:
    client = three.client()
    numbers = Numbers(client[name])
    start = now(client)
    numbers.write()
    behind = three.secondaries()[0]
    direct = behind.direct(readPreference="secondaryPreferred")
    reading = open_stream(direct, name, start_at_operation_time=start)
    eventually(lambda: len(reading.next_batch()[0]) == 5, "what was written is seen")
    settle(client)
    three.stop(behind)
    shutil.rmtree(behind.data)
    numbers.write()
    three.restart(behind)
    three.await_caught_up([behind])
    with pytest.raises(OperationFailure) as theirs:
        list(direct[name].watch(start_at_operation_time=start, max_await_time_ms=AWAIT_MS))
    opened = open_stream(direct, name, start_at_operation_time=start)
    with pytest.raises(tailrace.ServerError) as ours:
        opened.next_batch()
    assert (theirs.value.code, ours.value.code) == (286, 286)
    assert not opened.alive
    with pytest.raises(tailrace.ServerError) as lost:
        for _ in range(100):
            assert reading.next_batch()[0] == []
    assert lost.value.code == 286
    # The others still have it all.
    with Reader(open_stream(client, name, start_at_operation_time=start)) as reader:
        reader.await_number(numbers.count - 1)
        reader.check_complete(numbers.count)
    direct.close()


def test_images_and_documents_are_found_on_a_secondary(three: ReplicaSet, name: str) -> None:
    client = three.client()
    collection = client[name].create_collection(
        "kept", changeStreamPreAndPostImages={"enabled": True}
    )
    options = {"fullDocument": "updateLookup", "fullDocumentBeforeChange": "required"}
    with open_stream(client, name, options=options, read_preference=Secondary()) as stream:
        collection.insert_one({"_id": 1})
        with client.start_session() as session, session.start_transaction():
            for at in range(3):
                collection.update_one({"_id": 1}, {"$set": {"at": at}}, session=session)
        events: list[dict[str, Any]] = []
        eventually(
            lambda: events.extend(map(bson.decode, stream.next_batch()[0])) or len(events) == 4,
            "all events are seen",
        )
    befores = [event.get("fullDocumentBeforeChange") for event in events]
    assert befores == [None, {"_id": 1}, {"_id": 1, "at": 0}, {"_id": 1, "at": 1}]
    assert [event["fullDocument"] for event in events[1:]] == [{"_id": 1, "at": 2}] * 3
