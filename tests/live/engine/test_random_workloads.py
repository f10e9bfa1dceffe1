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
from tests.support.ddl_workload import NAMES, Workload
from tests.support.effort import effort
from tests.support.live_recordings import LiveRecording, record
from tests.support.transaction_workload import SMALL_TRANSACTION_ENTRIES

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
ON_A_VIEW = 166
SYSTEM = ("system.js", "system.views", "system.buckets.series", "view0", "series", "born")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A set of its own: its transactions span several entries, and it is seldom written to."""
    with ReplicaSet(parameters=SMALL_TRANSACTION_ENTRIES) as replica_set:
        yield replica_set.client()


def sampled_options(rng: random.Random, *, flags: bool) -> dict[str, Any]:
    options: dict[str, Any] = {flag: True for flag in FLAGS if flags and rng.random() < 0.4}
    newer = ["whenAvailable", "required"] if flags else []
    image = rng.choice([None, "default", "updateLookup", *newer])
    if image:
        options["fullDocument"] = image
    choice = rng.choice([None, None, "off", "whenAvailable", "required"])
    if choice:
        options["fullDocumentBeforeChange"] = choice
    if rng.random() < 0.3:
        options["allowToRunOnSystemNS"] = True
    if rng.random() < 0.1:
        options["allowToRunOnConfigDB"] = True
    if flags and image == "updateLookup" and rng.random() < 0.3:
        options["matchCollectionUUIDForUpdateLookup"] = True
    return options


def sampled_scope(rng: random.Random, databases: list[str]) -> str | None:
    database = rng.choice(databases)
    if rng.random() < 0.1:
        database = rng.choice(["admin", "config", "config", "local"])
    collection = rng.choice(NAMES)
    if rng.random() < 0.3:
        collection = rng.choice(SYSTEM)
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
    if theirs.error is None and ours.token != theirs.token:
        # A server writes to its log on its own, too: it must have done so in between.
        later = server_stream(client, scope, options, until=until)
        tokens = [each.token["_data"] for each in (theirs, ours, later)]
        assert tokens[0] < tokens[1] <= tokens[2], f"{said}: {tokens}"
    return ours


def check_replay(
    recording: LiveRecording, scope: str | None, options: dict[str, Any], live: Seen, said: str
) -> None:
    """A replay of the same log ends as the live stream did; a view, no log knows."""
    if live.error is not None and live.error[0] == ON_A_VIEW:
        return
    replayed = recording.replay(scope, options)
    assert not differences(replayed.events, live.events), f"{said}, replayed"
    assert replayed.error == live.error, f"{said}, replayed"


@pytest.mark.parametrize("seed", SEEDS)
def test_any_stream_over_a_random_workload_is_the_servers(client: Client, seed: int) -> None:
    rng = random.Random(seed)
    workload = Workload(client, seed, f"w{seed}")
    start = now(client)
    workload.run(STEPS)
    until = settle(client)
    since_6_0 = client.server_info()["versionArray"][0] >= 6
    recording = record(client, start, until, *(each.name for each in workload.databases))
    before = None
    for _ in range(STREAMS):
        scope = sampled_scope(rng, [database.name for database in workload.databases])
        options = {
            **sampled_options(rng, flags=since_6_0 or rng.random() < 0.05),
            **sampled_start(rng, start, before),
        }
        said = f"seed {seed}, {scope}, {options}"
        seen = check(client, scope, options, until, said)
        check_replay(recording, scope, options, seen, said)
        before = seen if seen.events else before
    for database in workload.databases:
        client.drop_database(database.name)
