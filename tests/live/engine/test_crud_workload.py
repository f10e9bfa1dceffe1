"""Random writes of every BSON type: the engine's events are the server's bytes."""

from __future__ import annotations

import os
import random
from typing import Any

from pymongo import MongoClient
from pymongo.database import Database
from tests.support.bson_values import types_in
from tests.support.change_streams import differences, engine_stream, now, server_stream, settle
from tests.support.crud_workload import run_crud
from tests.support.effort import effort

from tailrace.token.ctypes import GENERIC

OPERATIONS = effort(5000)


def test_random_writes_give_the_servers_events(
    mongodb_client: MongoClient[dict[str, Any]],
    database: Database[dict[str, Any]],
) -> None:
    seed = int(os.environ.get("TAILRACE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TAILRACE_SEED={seed}")
    start = now(mongodb_client)
    run_crud(database, seed, OPERATIONS)
    until = settle(mongodb_client)
    for chosen in ({}, {"showExpandedEvents": True}, {"fullDocument": "updateLookup"}):
        options = {**chosen, "startAtOperationTime": start}
        theirs = server_stream(mongodb_client, database.name, options, until=until)
        ours = engine_stream(mongodb_client, database.name, options, until=until)
        assert theirs.error is None
        assert ours.error is None
        assert not differences(ours.events, theirs.events), f"TAILRACE_SEED={seed}"
        assert len(ours.events) > OPERATIONS / 3
        assert set().union(*map(types_in, ours.events)) == set(GENERIC), "a type never came"
