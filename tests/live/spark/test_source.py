"""The source's planner and readers against a real log: the server's own stream, in batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.change_streams import differences, now, server_stream, settle
from tests.support.ddl_workload import Workload
from tests.support.effort import effort
from tests.support.source_query import Query, Row
from tests.support.source_rows import events_of_rows
from tests.support.transaction_workload import SMALL_TRANSACTION_ENTRIES

from tailrace.embedded import ReplicaSet
from tailrace.spark.source.connection import close_all
from tailrace.spark.source.offsets import format_time

Client = MongoClient[dict[str, Any]]
SEEDS = range(effort(4))
STEPS = 60


@pytest.fixture(scope="module")
def replica_set() -> Iterator[ReplicaSet]:
    """A set of its own: its transactions span several entries."""
    with ReplicaSet(parameters=SMALL_TRANSACTION_ENTRIES) as started:
        yield started
        close_all()


@pytest.fixture(scope="module")
def client(replica_set: ReplicaSet) -> Client:
    return replica_set.client()


def time_of(stamp: bson.Timestamp) -> int:
    return stamp.time << 32 | stamp.inc


def in_token_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["token"])


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_of_any_size_hold_the_servers_own_stream(
    replica_set: ReplicaSet, client: Client, seed: int
) -> None:
    rng = random.Random(seed)
    workload = Workload(client, seed, f"s{seed}")
    start = now(client)
    workload.run(STEPS)
    until = settle(client)
    images = rng.choice(["off", "off", "whenAvailable"])
    query = Query(
        {
            "uri": replica_set.uri,
            "startAt": format_time(time_of(start)),
            "maxEventsPerBatch": str(rng.choice([1, 3, 10, 1000])),
            "slices": str(rng.choice([1, 3])),
            "fullDocumentBeforeChange": images,
        }
    )
    rows = query.run_to(time_of(until))
    options: dict[str, Any] = {"startAtOperationTime": start}
    if images != "off":
        options["fullDocumentBeforeChange"] = images
    theirs = server_stream(client, None, options, until=until)
    ours = events_of_rows(in_token_order(rows))
    difference = differences(ours, theirs.events)
    if difference:
        pytest.fail(f"seed {seed}: {difference}")
    for batch_start, batch_end, before in rng.sample(query.batches, min(5, len(query.batches))):
        assert query.run(batch_start, batch_end) == before
    for database in workload.databases:
        client.drop_database(database.name)
