"""A stream of several hundred events goes on from every one of its places."""

from __future__ import annotations

import os
import random
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.change_streams import differences, now, server_stream, settle, time_of
from tests.support.ddl_workload import Workload
from tests.support.effort import effort
from tests.support.live_recordings import record

from tailrace.token import ResumeToken

Client = MongoClient[dict[str, Any]]
STEPS = 40
EVENTS = effort(200)
ASKED = 12
"""How many of the places the server is asked to go on from as well."""


@pytest.mark.parametrize("flags", [{}, {"showExpandedEvents": True, "showSystemEvents": True}])
def test_from_every_token_comes_exactly_the_rest(
    mongodb_client: Client, flags: dict[str, Any]
) -> None:
    seed = int(os.environ.get("TAILRACE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TAILRACE_SEED={seed}")
    start = now(mongodb_client)
    workload = Workload(mongodb_client, seed, "everywhere")
    events: list[bytes] = []
    while len(events) < EVENTS:
        workload.run(STEPS)
        until = settle(mongodb_client)
        names = [database.name for database in workload.databases]
        recording = record(mongodb_client, start, until, *names)
        events = recording.replay(None, {**flags, "startAtOperationTime": start}).events
    tokens = [bson.decode(event)["_id"] for event in events]
    asked = set(random.Random(seed).sample(range(len(events)), ASKED))
    for place, token in enumerate(tokens):
        behind = {**flags, "startAfter": token}
        rest = recording.replay(None, behind)
        assert rest.error is None
        difference = differences(rest.events, events[place + 1 :])
        assert not difference, f"TAILRACE_SEED={seed}, behind {token}: {difference}"
        if place in asked:
            theirs = server_stream(mongodb_client, None, behind, until=until)
            assert not differences(rest.events, theirs.events), f"TAILRACE_SEED={seed}, {token}"
        if place % 3:
            continue
        time = time_of(token)
        mark = ResumeToken.at(time.time << 32 | time.inc, ResumeToken.parse(token).version)
        first = next(at for at, each in enumerate(tokens) if time_of(each) >= time)
        whole = recording.replay(None, {**flags, "resumeAfter": mark.document})
        difference = differences(whole.events, events[first:])
        assert not difference, f"TAILRACE_SEED={seed}, from {mark}: {difference}"
    for database in workload.databases:
        mongodb_client.drop_database(database.name)
