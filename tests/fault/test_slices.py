"""A slice of the log is whole, or an error: whatever happens to cursors, members and the log."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.database import Database
from tests.fault.test_cursor_loss import FAULTS, OPLOG
from tests.support.change_streams import now, server_stream, settle
from tests.support.source_query import Query, Row
from tests.support.source_rows import events_of_rows
from tests.support.waiting import eventually

from tailrace.embedded import ReplicaSet
from tailrace.errors import ServerError
from tailrace.oplog import slices
from tailrace.spark.source.connection import close_all
from tailrace.spark.source.cuts import Limit
from tailrace.spark.source.offsets import Offset, batch, format_time
from tailrace.spark.source.reading import read_slice

Base = Database[dict[str, Any]]
Client = MongoClient[dict[str, Any]]
WRITES = 60
SMALL_BATCH = 7


@pytest.fixture(autouse=True)
def no_client_left_open() -> Iterator[None]:
    """What a query opened is closed while its server is there."""
    yield
    close_all()


def query_from(replica_set: ReplicaSet, start: bson.Timestamp, **options: str) -> Query:
    text = format_time(start.time << 32 | start.inc)
    return Query({"uri": replica_set.uri, "startAt": text, **options})


def write(database: Base) -> None:
    for number in range(WRITES):
        database.numbers.insert_one({"_id": number})


def time_of(stamp: bson.Timestamp) -> int:
    return stamp.time << 32 | stamp.inc


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("times", [1, 3])
def test_a_slice_is_whole_when(
    mongodb: ReplicaSet,
    mongodb_client: Client,
    database: Base,
    fault: str,
    times: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "BATCH_ENTRIES", SMALL_BATCH)
    start = now(mongodb_client)
    write(database)
    until = settle(mongodb_client)
    query = query_from(mongodb, start, namespaces=f"{database.name}.*")
    end = query.planner.end(Offset.parse(query.at), Limit()).document
    with mongodb.fail_point(
        "failCommand", {"times": times}, **{"namespace": OPLOG, **FAULTS[fault]}
    ):
        rows = query.run(query.at, end)
    options = {"startAtOperationTime": start}
    theirs = server_stream(mongodb_client, database.name, options, until=until).events
    assert events_of_rows(rows) == theirs


def test_a_reader_waits_for_the_secondary_that_it_reads(three: ReplicaSet) -> None:
    client = three.client()
    database = client["fault_slices"]
    start = now(client)
    late = three.secondaries()[0]
    with three.fail_point("rsSyncApplyStop", node=late):
        write(database)
        until = settle(client)
        query = query_from(three, start, namespaces=f"{database.name}.*", slices="1")
        begin = query.at
        query.run_to(time_of(until))
        direct = f"mongodb://127.0.0.1:{late.port}/?directConnection=true"
        options = replace(query.parsed, uri=f"{direct}&readPreference=secondaryPreferred")
        tasks = query.planner.tasks(*batch(begin, query.at))
        rows: list[Row] = []
        done = threading.Event()

        def read() -> None:
            for task in tasks:
                for found in read_slice(task, options):
                    rows.extend(found.to_pylist())
            done.set()

        reader = threading.Thread(target=read)
        reader.start()
        eventually(lambda: reading(late.client), "the slice is asked for")
        assert not done.is_set()
    reader.join(60)
    assert done.is_set()
    theirs = server_stream(
        client, database.name, {"startAtOperationTime": start}, until=until
    ).events
    assert events_of_rows(rows) == theirs
    client.drop_database(database.name)


def reading(client: Client) -> bool:
    """Whether somebody waits for the log with an ``afterClusterTime``."""
    running = client.admin.aggregate([{"$currentOp": {"allUsers": True}}])
    commands = [each.get("command", {}) for each in running]
    return any(
        each.get("find") == "oplog.rs" and "afterClusterTime" in each.get("readConcern", {})
        for each in commands
    )


def test_a_position_that_left_the_log_is_an_error_that_names_the_gap(three: ReplicaSet) -> None:
    client = three.client()
    database = client["fault_slices"]
    start = now(client)
    write(database)
    until = settle(client)
    behind = three.secondaries()[0]
    three.await_caught_up([behind])
    direct = f"mongodb://127.0.0.1:{behind.port}/?directConnection=true"
    query = Query(
        {
            "uri": f"{direct}&readPreference=secondaryPreferred",
            "startAt": format_time(time_of(start)),
            "maxEventsPerBatch": "20",
        }
    )
    query.run_to(time_of(start) + 1)
    (begin, end, _), position = query.batches[0], Offset.parse(query.at).cut
    assert position < time_of(until)
    tasks = query.planner.tasks(*batch(begin, end))
    three.stop(behind)
    shutil.rmtree(behind.data)
    write_more(database)
    three.restart(behind)
    three.await_caught_up([behind])
    attempts: tuple[Callable[[], Any], ...] = (
        query.step,
        lambda: query.run(begin, end),
        lambda: list(read_slice(tasks[0], query.parsed)),
    )
    for attempt in attempts:
        with pytest.raises(ServerError) as refused:
            attempt()
        assert (refused.value.code, refused.value.code_name) == (286, "ChangeStreamHistoryLost")
        assert refused.value.start <= position < refused.value.oldest
        assert format_time(refused.value.start) in str(refused.value)
        assert format_time(refused.value.oldest) in str(refused.value)
        assert "\n" not in str(refused.value)
    client.drop_database(database.name)


def write_more(database: Base) -> None:
    database.more.insert_many([{"_id": number} for number in range(WRITES)])
