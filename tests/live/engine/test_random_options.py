"""Whatever one asks for, a stream opens or is refused as the server would have it."""

from __future__ import annotations

import os
import random
from typing import Any

import bson
import pytest
from bson.int64 import Int64
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure
from tests.support.change_streams import now, server_stream, settle
from tests.support.effort import effort
from tests.support.random_options import RandomOptions

import tailrace
from tailrace.event.shape import parse_version
from tailrace.stage.options import Caller, parse_options

Client = MongoClient[dict[str, Any]]
Refusal = tuple[int, str] | None
HIGH_WATER_MARKS = [
    {"_data": f"8200000064000000022B0{mark}04"} for mark in ("229296E", "429296E14")
]


def server_says(client: Client, scope: str | None, options: dict[str, Any]) -> Refusal:
    name, _, collection = (scope or "admin").partition(".")
    stage = {"$changeStream": options}
    aggregate = {"aggregate": collection or 1, "pipeline": [stage], "cursor": {"batchSize": 0}}
    try:
        cursor = client[name].command(aggregate)["cursor"]
    except OperationFailure as error:
        return error.code or 0, (error.details or {})["codeName"]
    if cursor["id"]:
        owner = collection or "$cmd.aggregate"
        client[name].command({"killCursors": owner, "cursors": [Int64(cursor["id"])]})
    return None


def engine_says(client: Client, scope: str | None, options: dict[str, Any]) -> Refusal:
    try:
        tailrace.open_oplog(client, scope, options=options).close()
    except tailrace.ServerError as error:
        return error.code, error.code_name
    return None


def tokens(client: Client, database: Database[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tokens of every kind of event, invalidates included."""
    start = now(client)
    database.things.insert_one({"_id": 1.5})
    database.things.update_one({"_id": 1.5}, {"$set": {"a": 1}})
    database.things.create_index("a")
    database.things.drop()
    database.things.insert_one({"_id": "x"})
    client.drop_database(database.name)
    until = settle(client)
    found = list(HIGH_WATER_MARKS)
    for scope in (database.name, f"{database.name}.things"):
        seen = server_stream(client, scope, {"startAtOperationTime": start}, until=until)
        found += [bson.decode(event)["_id"] for event in seen.events]
    return found


def test_random_options_are_taken_or_refused_as_by_the_server(
    mongodb_client: Client, database: Database[dict[str, Any]]
) -> None:
    seed = int(os.environ.get("TAILRACE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TAILRACE_SEED={seed}")
    known = tokens(mongodb_client, database)
    database.create_collection("view", viewOn="things", pipeline=[])
    database.create_collection("series", timeseries={"timeField": "at"})
    database.things.insert_one({"_id": 1})
    made = RandomOptions(random.Random(seed), known, now(mongodb_client))
    refusals: set[Refusal] = set()
    for _ in range(effort(400)):
        scope, options = made.scope(database.name), made.options()
        if scope is None:
            options = {"allChangesForCluster": True, **options}
        theirs = server_says(mongodb_client, scope, options)
        ours = engine_says(mongodb_client, scope, options)
        assert ours == theirs, f"TAILRACE_SEED={seed}, {scope}, {options}"
        refusals.add(theirs)
    assert len(refusals) > 8


@pytest.mark.parametrize(
    "option", ["showExpandedEvents", "showRawUpdateDescription", "showSystemEvents"]
)
@pytest.mark.parametrize("value", [True, False])
def test_the_stable_api_names_what_it_does_not_have(
    mongodb_client: Client, database: Database[dict[str, Any]], option: str, value: bool
) -> None:
    stage = {"$changeStream": {option: value, "bogus": 1}}
    strict = {"apiVersion": "1", "apiStrict": True}
    with pytest.raises(OperationFailure) as refused:
        database.command({"aggregate": 1, "pipeline": [stage], "cursor": {}, **strict})
    version = parse_version(mongodb_client.server_info()["version"])
    with pytest.raises(tailrace.ServerError) as ours:
        parse_options(stage["$changeStream"], None, version, caller=Caller(api_strict=True))
    assert ours.value.code == refused.value.code
