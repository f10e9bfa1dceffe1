"""What ends a stream at each scope, and how one goes on behind its end: as the server has it."""

from __future__ import annotations

from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.database import Database
from tests.support.change_streams import (
    Seen,
    differences,
    engine_stream,
    now,
    server_stream,
    settle,
)
from tests.support.live_recordings import LiveRecording, record

Client = MongoClient[dict[str, Any]]
Base = Database[dict[str, Any]]
ON_A_VIEW = 166


def ended_in_every_way(client: Client, database: Base) -> None:
    """Drops, renames to and from, and dropped databases, over and over, and a view."""
    things, others = database.things, database.others
    things.insert_one({"_id": 1})
    things.drop()
    things.insert_one({"_id": 2})
    others.insert_one({"_id": 3})
    others.rename("things", dropTarget=True)
    things.insert_one({"_id": 4})
    things.rename("renamed")
    things.insert_one({"_id": 5})
    client.drop_database(database.name)
    things.insert_one({"_id": 6})
    client.drop_database(database.name)
    with client.start_session() as session, session.start_transaction():
        things.insert_one({"_id": 7}, session=session)
        things.update_one({"_id": 7}, {"$set": {"a": 1}}, session=session)
    things.drop()
    database.create_collection("view", viewOn="things", pipeline=[])
    database.drop_collection("view")
    database["system.js"].insert_one({"_id": "f"})


class Checked:
    """Streams of the same log: the server's, the engine's, and a replay's."""

    def __init__(self, client: Client, recording: LiveRecording, until: bson.Timestamp) -> None:
        self._client = client
        self._recording = recording
        self._until = until

    def __call__(self, scope: str | None, options: dict[str, Any]) -> Seen:
        """The stream, of which all three are the same."""
        theirs = server_stream(self._client, scope, options, until=self._until)
        ours = engine_stream(self._client, scope, options, until=self._until)
        replayed = self._recording.replay(scope, options)
        said = f"{scope}, {options}"
        assert not differences(ours.events, theirs.events), said
        assert (ours.error, ours.ended) == (theirs.error, theirs.ended), said
        if theirs.error is None or theirs.error[0] != ON_A_VIEW:
            assert not differences(replayed.events, theirs.events), said
            assert replayed.error == theirs.error, said
        return theirs


@pytest.mark.parametrize("flags", [{}, {"showExpandedEvents": True, "showSystemEvents": True}])
@pytest.mark.parametrize(
    ("scope", "ends"),
    [
        (None, 0),
        ("{db}", 2),
        ("{db}.things", 6),
        ("{db}.others", 1),
        ("{db}.renamed", 2),
        ("{db}.system.js", 0),
    ],
)
def test_a_stream_ends_and_goes_on_as_the_servers(
    mongodb_client: Client,
    database: Base,
    scope: str | None,
    ends: int,
    flags: dict[str, Any],
) -> None:
    start = now(mongodb_client)
    ended_in_every_way(mongodb_client, database)
    until = settle(mongodb_client)
    recording = record(mongodb_client, start, until, database.name)
    checked = Checked(mongodb_client, recording, until)
    scope = scope.format(db=database.name) if scope else None
    options = {**flags, "allowToRunOnSystemNS": True}
    seen, found = checked(scope, {**options, "startAtOperationTime": start}), 0
    while seen.ended:
        found += 1
        assert seen.operations()[-1] == "invalidate"
        refused = checked(scope, {**options, "resumeAfter": seen.token})
        assert refused.error == (260, "InvalidResumeToken")
        # From the event before the invalidate it ends at once, and in the same way.
        before = bson.decode(seen.events[-2])["_id"]
        again = checked(scope, {**options, "startAfter": before})
        assert again.operations() == ["invalidate"]
        seen = checked(scope, {**options, "startAfter": seen.token})
    assert found == ends
