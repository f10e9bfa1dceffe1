"""Random workloads, random options, random starts: the engine is the server, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.change_streams import (
    Seen,
    differences,
    engine_stream,
    now,
    server_stream,
    settle,
    time_of,
)
from tests.support.ddl_workload import SMALL_TRANSACTION_ENTRIES, Workload
from tests.support.effort import effort

from tailrace.embedded import ReplicaSet

Client = MongoClient[dict[str, Any]]
SEEDS = range(effort(20))
STEPS = 60
STREAMS = 12
FLAGS = (
    "showExpandedEvents",
    "showSystemEvents",
    "showMigrationEvents",
    "showRawUpdateDescription",
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A set of its own: its transactions span several entries, and it is seldom written to."""
    with ReplicaSet(parameters=SMALL_TRANSACTION_ENTRIES) as replica_set:
        yield replica_set.client()


def sampled_options(rng: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {flag: True for flag in FLAGS if rng.random() < 0.4}
    choice = rng.choice([None, "default", "updateLookup", "whenAvailable", "required"])
    if choice:
        options["fullDocument"] = choice
    choice = rng.choice([None, None, "off", "whenAvailable", "required"])
    if choice:
        options["fullDocumentBeforeChange"] = choice
    return options


def sampled_scope(rng: random.Random, databases: list[str]) -> str | None:
    database = rng.choice(databases)
    collection = rng.choice(["one", "two", "three", "od-d.näme"])
    return rng.choice([None, database, database, f"{database}.{collection}"])


def sampled_start(rng: random.Random, start: bson.Timestamp, before: Seen | None) -> dict[str, Any]:
    """The beginning, or a place in a stream that was read before."""
    if before is None or not before.events or rng.random() < 0.4:
        return {"startAtOperationTime": start}
    token = bson.decode(rng.choice(before.events))["_id"]
    if rng.random() < 0.3:
        return {"startAtOperationTime": time_of(token)}
    if rng.random() < 0.3:
        token = rng.choice(before.tokens)
    return {rng.choice(["resumeAfter", "startAfter"]): token}


def check(
    client: Client, scope: str | None, options: dict[str, Any], until: bson.Timestamp, said: str
) -> Seen:
    theirs = server_stream(client, scope, options, until=until)
    if theirs.error is not None:
        # An error takes the batch with it that it ends: get all that came before it.
        theirs = server_stream(client, scope, options, until=until, batch_size=1)
    ours = engine_stream(client, scope, options, until=until)
    difference = differences(ours.events, theirs.events)
    if difference:
        pytest.fail(
            f"{said}: {difference}\nours ends with {ours.error}, theirs with {theirs.error}"
        )
    assert ours.error == theirs.error, said
    assert ours.ended == theirs.ended, said
    if theirs.error is None:
        assert ours.token == theirs.token, said
    return theirs


@pytest.mark.parametrize("seed", SEEDS)
def test_any_stream_over_a_random_workload_is_the_servers(client: Client, seed: int) -> None:
    rng = random.Random(seed)
    workload = Workload(client, seed, f"w{seed}")
    start = now(client)
    workload.run(STEPS)
    until = settle(client)
    before = None
    for _ in range(STREAMS):
        scope = sampled_scope(rng, [database.name for database in workload.databases])
        options = {**sampled_options(rng), **sampled_start(rng, start, before)}
        before = check(client, scope, options, until, f"seed {seed}, {scope}, {options}")
    for database in workload.databases:
        client.drop_database(database.name)
