"""Streams of both kinds and of both engines on a real server: closing, stores, sessions."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bson
import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure
from tests.support.change_streams import now
from tests.support.commands_seen import CommandsSeen
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet
from tailrace.errors import OptionError, UnsupportedSource

Base = Database[dict[str, Any]]
Client = MongoClient[dict[str, Any]]
ENGINES = ("server", "oplog")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_can_be_closed_from_another_thread(database: Base, engine: str) -> None:
    stream = tailrace.watch(database, max_await_time_ms=60_000, engine=engine)
    seen: list[Any] = []
    reader = threading.Thread(target=lambda: seen.extend(stream))
    reader.start()
    database.things.insert_one({"_id": 1})
    eventually(lambda: seen, "the event is seen")
    stream.close()
    reader.join(50)
    assert not reader.is_alive()
    assert len(seen) == 1
    assert not stream.alive


def test_closing_ends_the_cursor_on_the_server(mongodb_client: Client, database: Base) -> None:
    stream = tailrace.watch(database)
    number = stream.cursor_id
    assert number in cursors(mongodb_client)
    stream.close()
    assert number not in cursors(mongodb_client)


def test_a_stream_that_is_forgotten_ends_its_cursor(mongodb_client: Client, database: Base) -> None:
    number = tailrace.watch(database).cursor_id
    gc.collect()
    eventually(lambda: number not in cursors(mongodb_client), "the cursor is gone")


def cursors(client: Client) -> list[int]:
    """The cursors that a server has open."""
    said = client.admin.aggregate([{"$currentOp": {"allUsers": True, "idleCursors": True}}])
    return [op["cursor"]["cursorId"] for op in said if "cursorId" in op.get("cursor", {})]


@pytest.mark.parametrize("target", ["client", "database", "collection"])
def test_both_engines_give_the_same_bytes_and_go_on_from_each_others_tokens(
    mongodb_client: Client, database: Base, target: str
) -> None:
    start = now(mongodb_client)
    database.things.insert_one({"_id": 1})
    database.things.update_one({"_id": 1}, {"$set": {"a": 1}})
    database.things.delete_one({"_id": 1})
    watched = {"client": mongodb_client, "database": database, "collection": database.things}[
        target
    ]
    stages = [{"$match": {"ns.db": database.name}}]
    read: dict[str, list[bytes]] = {}
    for engine in ENGINES:
        read[engine] = take(watched, stages, 3, engine, start_at_operation_time=start)
    assert read["server"] == read["oplog"]
    first = bson.decode(read["server"][0])["_id"]
    for engine in ENGINES:
        assert take(watched, stages, 2, engine, resume_after=first) == read["server"][1:]


def take(watched: Any, stages: Any, count: int, engine: str, **given: Any) -> list[bytes]:
    seen: list[bytes] = []
    with tailrace.watch(watched, stages, engine=engine, **given) as stream:
        while len(seen) < count:
            seen += [bytes(event.raw) for event in stream.next_batch()[0]]
    return seen


def test_our_engine_refuses_as_the_server_does(database: Base) -> None:
    said = []
    for engine in ENGINES:
        with pytest.raises(OperationFailure) as raised:
            tailrace.watch(database, resume_after={"_data": "no token"}, engine=engine)
        said.append(raised.value.code)
    assert said[0] == said[1]


def test_our_engine_ends_with_the_invalidate(database: Base) -> None:
    database.things.insert_one({})
    with tailrace.watch(database.things, engine="oplog") as stream:
        database.things.drop()
        assert [event["operationType"] for event in stream] == ["drop", "invalidate"]
        assert not stream.alive


@pytest.mark.parametrize("kind", ["file", "collection"])
def test_a_store_brings_the_next_run_behind_what_was_dealt_with(
    mongodb_client: Client, database: Base, tmp_path: Path, kind: str
) -> None:
    stores = {
        "file": tailrace.FileTokenStore(tmp_path / "place"),
        "collection": tailrace.MongoTokenStore(mongodb_client[f"{database.name}_places"].at, "me"),
    }
    store = stores[kind]
    seen: list[int] = []
    try:
        for first in (0, 10):
            with tailrace.watch(database.things, token_store=store) as stream:
                database.things.insert_many([{"_id": first + at} for at in range(10)])
                while len(seen) < first + 10:
                    events, _ = stream.next_batch()
                    seen += [event["documentKey"]["_id"] for event in events]
                stream.commit()
    finally:
        mongodb_client.drop_database(f"{database.name}_places")
    assert seen == list(range(20))


def test_what_was_not_dealt_with_comes_again(database: Base, tmp_path: Path) -> None:
    store = tailrace.FileTokenStore(tmp_path / "place", "things")
    with (
        pytest.raises(RuntimeError),
        tailrace.watch(database.things, token_store=store) as stream,
    ):
        database.things.insert_one({"_id": 1})
        stream.next()
        raise RuntimeError("it could not be dealt with")
    with tailrace.watch(database.things, token_store=store) as stream:
        assert stream.next()["documentKey"] == {"_id": 1}
    with pytest.raises(OptionError, match="belongs to a stream of things, not of others"):
        tailrace.FileTokenStore(tmp_path / "place", "others").load()


def test_a_session_of_the_callers_is_used_and_left_open(
    mongodb: ReplicaSet, database_name: str
) -> None:
    seen = CommandsSeen()
    with (
        MongoClient[dict[str, Any]](mongodb.uri, event_listeners=[seen]) as client,
        client.start_session() as session,
    ):
        things = client[database_name].things
        things.insert_one({}, session=session)
        with tailrace.watch(things, session=session, max_await_time_ms=10) as stream:
            stream.try_next()
        assert not session.has_ended
        assert seen.sessions() == {bytes(session.session_id["id"])}
        opening = seen.started_events[0].command
        assert opening["readConcern"]["afterClusterTime"] <= session.operation_time


def test_a_direct_connection_is_enough(mongodb: ReplicaSet, database: Base) -> None:
    with (
        mongodb.nodes[0].direct() as client,
        tailrace.watch(client[database.name]) as stream,
    ):
        database.things.insert_one({"_id": 1})
        assert stream.next()["documentKey"] == {"_id": 1}
        assert stream.address == client.address


def test_options_of_the_future_are_passed_on(database: Base) -> None:
    with tailrace.watch(database, showExpandedEvents=True) as stream:
        database.create_collection("things")
        assert stream.next()["operationType"] == "create"
    with pytest.raises(OperationFailure) as raised:
        tailrace.watch(database, show_what_is_to_come=True)
    assert "showWhatIsToCome" in str(raised.value)


def test_what_cannot_be_watched_says_why(database: Base) -> None:
    with pytest.raises(TypeError, match="client, database or collection"):
        tailrace.watch("shop")
    with pytest.raises(OptionError, match="engine is server or oplog"):
        tailrace.watch(database, engine="oplogs")


def test_keep_trying_outlasts_a_restart(start_replica_set: Callable[..., ReplicaSet]) -> None:
    replica_set = start_replica_set()
    client = replica_set.client(serverSelectionTimeoutMS=200)
    things = client.shop.things
    with tailrace.watch(things, on_error="keep-trying", max_await_time_ms=100) as stream:
        things.insert_one({"_id": 1})
        assert stream.next()["documentKey"] == {"_id": 1}
        node = replica_set.nodes[0]
        replica_set.kill(node)
        for _ in range(3):
            assert stream.try_next() is None
        replica_set.restart(node)
        replica_set.await_members()
        eventually(lambda: client.admin.command("hello")["isWritablePrimary"], "the client sees it")
        things.insert_one({"_id": 2})
        assert stream.next()["documentKey"] == {"_id": 2}


def test_an_asynchronous_read_that_is_cancelled_leaves_the_stream_valid(
    mongodb: ReplicaSet, database_name: str
) -> None:
    async def run() -> None:
        async with AsyncMongoClient[dict[str, Any]](mongodb.uri) as client:
            things = client[database_name].things
            async with tailrace.watch(things, max_await_time_ms=60_000) as stream:
                for number in range(3):
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(stream.next(), 0.3)
                    await things.insert_one({"_id": number})
                    assert (await stream.next())["documentKey"] == {"_id": number}

    asyncio.run(run())


def test_an_asynchronous_stream_has_stores_and_can_be_closed_by_another_task(
    mongodb: ReplicaSet, mongodb_client: Client, database_name: str, tmp_path: Path
) -> None:
    async def run(store: Any, number: int) -> None:
        async with AsyncMongoClient[dict[str, Any]](mongodb.uri) as client:
            things = client[database_name].things
            stream = await tailrace.watch(things, token_store=store, max_await_time_ms=60_000)
            await things.insert_one({"_id": number})
            events, token = await stream.next_batch()
            assert [event["documentKey"]["_id"] for event in events] == [number]
            await stream.commit()
            waiting = asyncio.create_task(stream.next())
            await asyncio.sleep(0)
            await stream.close()
            with pytest.raises(StopAsyncIteration):
                await waiting
            assert token == stream.resume_token

    asyncio.run(run(tailrace.FileTokenStore(tmp_path / "place"), 1))
    asyncio.run(run(tailrace.FileTokenStore(tmp_path / "place"), 2))
    places = f"{database_name}_places"

    async def in_a_collection() -> None:
        async with AsyncMongoClient[dict[str, Any]](mongodb.uri) as client:
            await run(tailrace.AsyncMongoTokenStore(client[places].at, "me"), 3)

    asyncio.run(in_a_collection())
    assert mongodb_client[places].at.find_one({"_id": "me"})
    mongodb_client.drop_database(places)


def test_our_engine_needs_a_synchronous_client_of_a_set(
    mongodb: ReplicaSet, start_replica_set: Callable[..., ReplicaSet]
) -> None:
    with pytest.raises(OptionError) as raised:
        tailrace.watch(AsyncMongoClient(mongodb.uri).shop, engine="oplog")
    assert raised.value.option == "engine"
    assert issubclass(UnsupportedSource, tailrace.TailraceError)
