"""A stream from the live oplog: it starts, goes on, ends and refuses as the server's."""

from __future__ import annotations

import threading
import time
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure
from tests.support.change_streams import (
    differences,
    engine_stream,
    now,
    reached,
    server_stream,
    settle,
    time_of,
)

import tailrace
from tailrace.embedded import ReplicaSet
from tailrace.token import ResumeToken

Client = MongoClient[dict[str, Any]]
Base = Database[dict[str, Any]]


def drain(stream: tailrace.OplogStream, until: bson.Timestamp) -> list[bytes]:
    deadline = time.monotonic() + 30
    events: list[bytes] = []
    while stream.alive:
        assert time.monotonic() < deadline, "the stream stands still"
        batch, token = stream.next_batch()
        events += batch
        if reached(token, until):
            break
    return events


def keys(events: list[bytes]) -> list[Any]:
    return [bson.decode(event)["documentKey"]["_id"] for event in events]


def test_without_a_start_only_what_comes_after_is_shown(
    mongodb_client: Client, database: Base
) -> None:
    database.things.insert_one({"_id": "before"})
    with tailrace.open_oplog(mongodb_client, database.name, max_await_ms=50) as stream:
        database.things.insert_one({"_id": "after"})
        assert keys(drain(stream, settle(mongodb_client))) == ["after"]


def test_an_idle_stream_moves_its_token_through_no_ops(
    mongodb_client: Client, database: Base
) -> None:
    with tailrace.open_oplog(mongodb_client, database.name, max_await_ms=50) as stream:
        first = stream.resume_token
        settle(mongodb_client)
        assert drain(stream, settle(mongodb_client)) == []
        assert time_of(stream.resume_token) > time_of(first)


def test_events_come_one_by_one_each_with_its_token(mongodb_client: Client, database: Base) -> None:
    with tailrace.open_oplog(mongodb_client, database.name, max_await_ms=50) as stream:
        database.things.insert_many([{"_id": at} for at in range(3)])
        settle(mongodb_client)
        tokens = []
        for event in stream:
            tokens.append((event["_id"]["_data"], stream.resume_token["_data"]))
            if len(tokens) == 3:
                break
    assert tokens[0][0] == tokens[0][1]
    assert tokens[1][0] == tokens[1][1]
    assert tokens[2][0] <= tokens[2][1]


def test_a_dropped_collection_ends_its_stream_behind_the_invalidate(
    mongodb_client: Client, database: Base
) -> None:
    with tailrace.open_oplog(mongodb_client, f"{database.name}.things", max_await_ms=50) as stream:
        database.things.insert_one({"_id": 1})
        database.things.drop()
        operations = [event["operationType"] for event in stream]
        assert operations == ["insert", "drop", "invalidate"]
        assert not stream.alive
        assert stream.next_batch() == ([], stream.resume_token)
        token = stream.resume_token
    with pytest.raises(tailrace.ServerError) as refused:
        tailrace.open_oplog(mongodb_client, f"{database.name}.things", resume_after=token)
    assert refused.value.code == 260
    database.things.insert_one({"_id": 2})
    with tailrace.open_oplog(
        mongodb_client, f"{database.name}.things", start_after=token, max_await_ms=50
    ) as stream:
        assert keys(drain(stream, settle(mongodb_client))) == [2]


def test_a_batch_may_be_cut_anywhere(mongodb_client: Client, database: Base) -> None:
    start = now(mongodb_client)
    with mongodb_client.start_session() as session, session.start_transaction():
        for at in range(7):
            database.things.insert_one({"_id": at}, session=session)
    database.things.update_many({}, {"$set": {"seen": True}})
    until = settle(mongodb_client)
    options = {"startAtOperationTime": start}
    theirs = server_stream(mongodb_client, database.name, options, until=until)
    whole = engine_stream(mongodb_client, database.name, options, until=until)
    cut = engine_stream(mongodb_client, database.name, options, until=until, max_events=1)
    assert not differences(whole.events, theirs.events)
    assert not differences(cut.events, theirs.events)
    for handed_out, token in enumerate(cut.tokens[:14], 1):
        rest = engine_stream(
            mongodb_client, database.name, {}, until=until, start_after=token, max_events=3
        )
        assert not differences(rest.events, theirs.events[handed_out:])


def test_closing_from_another_thread_ends_a_read_that_waits(
    mongodb_client: Client, database: Base
) -> None:
    stream = tailrace.open_oplog(mongodb_client, database.name, max_await_ms=500)
    stream.next_batch()
    ended = threading.Event()

    def read() -> None:
        for _ in stream:
            pass
        ended.set()

    reader = threading.Thread(target=read)
    reader.start()
    stream.close()
    assert ended.wait(10)
    reader.join()
    assert not stream.alive


BAD: list[tuple[str, dict[str, Any]]] = [
    ("{db}", {"nonsense": 1}),
    ("{db}", {"fullDocument": "sometimes"}),
    ("{db}", {"fullDocument": 1}),
    ("{db}.view", {}),
    ("{db}.series", {}),
    ("{db}.system.things", {}),
    ("config", {}),
    ("local", {}),
    ("{db}", {"resumeAfter": {"_data": "82"}}),
    ("{db}", {"resumeAfter": {}}),
    ("{db}", {"startAfter": {"_data": "826AFE9587000000082B0229296E04"}, "resumeAfter": {}}),
]


@pytest.mark.parametrize(("namespace", "options"), BAD)
def test_what_the_server_refuses_is_refused_with_its_code(
    mongodb_client: Client, database: Base, namespace: str, options: dict[str, Any]
) -> None:
    database.create_collection("view", viewOn="things", pipeline=[])
    database.create_collection("series", timeseries={"timeField": "at"})
    namespace = namespace.format(db=database.name)
    name, _, collection = namespace.partition(".")
    with pytest.raises(OperationFailure) as theirs:
        mongodb_client[name].command(
            "aggregate", collection or 1, pipeline=[{"$changeStream": options}], cursor={}
        )
    with pytest.raises(tailrace.ServerError) as ours:
        tailrace.open_oplog(mongodb_client, namespace, options=options)
    assert ours.value.code == theirs.value.code
    assert ours.value.code_name == (theirs.value.details or {})["codeName"]


def test_a_server_that_hides_its_parameters_can_be_read(
    mongodb: ReplicaSet, mongodb_client: Client, database: Base
) -> None:
    hidden = {"failCommands": ["getParameter"], "errorCode": 13}
    with (
        mongodb.fail_point("failCommand", **hidden),
        tailrace.open_oplog(mongodb_client, database.name, max_await_ms=50) as stream,
    ):
        database.things.insert_one({"_id": 1})
        assert keys(drain(stream, settle(mongodb_client))) == [1]


def test_who_may_not_read_the_log_learns_which_role_is_missing(
    mongodb: ReplicaSet, mongodb_client: Client, database: Base
) -> None:
    refusal = {
        "failCommands": ["find", "aggregate"],
        "errorCode": 13,
        "namespace": "local.oplog.rs",
    }
    with (
        tailrace.open_oplog(mongodb_client, database.name, max_await_ms=50) as stream,
        mongodb.fail_point("failCommand", **refusal),
        pytest.raises(tailrace.TailraceError) as refused,
    ):
        stream.next_batch()
    assert type(refused.value).__name__ == "PrivilegeError"
    assert refused.value.grant == "the role read on the database local"


def first_tokens(client: Client, scope: str, options: dict[str, Any]) -> tuple[str, str]:
    """From where server and engine say that one goes on before anything was read."""
    stage = {"$changeStream": options}
    aggregate = {"aggregate": 1, "pipeline": [stage], "cursor": {"batchSize": 0}}
    cursor = client[scope].command(aggregate)["cursor"]
    client[scope].command({"killCursors": "$cmd.aggregate", "cursors": [cursor["id"]]})
    with tailrace.open_oplog(client, scope, options=options) as stream:
        return cursor["postBatchResumeToken"]["_data"], stream.resume_token["_data"]


def test_a_stream_begins_with_the_token_that_the_servers_begins_with(
    mongodb_client: Client, database: Base
) -> None:
    start = now(mongodb_client)
    database.things.insert_many([{"_id": 1.5}, {"_id": "x"}])
    until = settle(mongodb_client)
    options = {"startAtOperationTime": start}
    seen = server_stream(mongodb_client, database.name, options, until=until)
    tokens = [bson.decode(event)["_id"] for event in seen.events]
    times = [start, until, bson.Timestamp(until.time + 1000, 1), bson.Timestamp(1, 1)]
    marks = [
        ResumeToken.at(time.time << 32 | time.inc, version).document
        for time in times
        for version in (1, 2)
    ]
    starts = [{"startAtOperationTime": time} for time in times]
    starts += [{"resumeAfter": token} for token in (*tokens, *marks)]
    starts += [{"startAfter": {**tokens[1], "_data": tokens[1]["_data"].lower()}}]
    for chosen in starts:
        theirs, ours = first_tokens(mongodb_client, database.name, chosen)
        assert ours == theirs, chosen
