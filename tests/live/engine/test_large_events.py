"""Events are as large as the server's may be; larger ones are its error.

A reply must hold an event, its token once more and a few hundred bytes around them: an
event that misses the limit by less than that is refused by 7.0, and ends the connection
to 6.0. The engine sends no such reply, so that it shows these events.
"""

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

from tailrace.stage.limit import MAX_EVENT_BYTES

Client = MongoClient[dict[str, Any]]
Base = Database[dict[str, Any]]
REPLY_BYTES = 20_000
"""More than a reply needs besides an event."""
KEY_BYTES = 6_000
"""Of an ``_id``: an event shows it three times and so outgrows its document."""
TOO_LARGE = (10334, "BSONObjectTooLarge")


def both(client: Client, database: Base, options: dict[str, Any], start: bson.Timestamp) -> Seen:
    """The stream of server and engine, which are the same."""
    until = settle(client)
    options = {**options, "startAtOperationTime": start}
    theirs = server_stream(client, database.name, options, until=until, batch_size=1)
    ours = engine_stream(client, database.name, options, until=until)
    difference = differences(ours.events, theirs.events)
    assert not difference, difference[:400]
    assert ours.error == theirs.error
    return ours


def test_an_event_comes_up_to_the_limit_and_not_beyond(
    mongodb_client: Client, database: Base
) -> None:
    start = now(mongodb_client)
    key = {"_id": b"k" * KEY_BYTES}
    database.things.insert_one({**key, "pad": b""})
    (event,) = both(mongodb_client, database, {}, start).events
    room = MAX_EVENT_BYTES - len(event)
    for more, error in ((-REPLY_BYTES, None), (1, TOO_LARGE)):
        database.things.delete_one(key)
        start = now(mongodb_client)
        database.things.insert_one({**key, "pad": b"p" * (room + more)})
        database.things.insert_one({"_id": "behind"})
        seen = both(mongodb_client, database, {}, start)
        database.things.delete_one({"_id": "behind"})
        assert seen.error == error
        wanted = [] if error else [MAX_EVENT_BYTES + more]
        assert [len(event) for event in seen.events[:1]] == wanted


@pytest.mark.parametrize("after", ["updateLookup", "required"])
def test_two_images_of_a_large_document_are_too_large(
    mongodb_client: Client, database: Base, after: str
) -> None:
    images = {"changeStreamPreAndPostImages": {"enabled": True}}
    things = database.create_collection("things", **images)
    start = now(mongodb_client)
    things.insert_one({"_id": 1, "pad": b"p" * (9 << 20)})
    things.update_one({"_id": 1}, {"$set": {"a": 1}})
    options = {"fullDocument": after, "fullDocumentBeforeChange": "required"}
    seen = both(mongodb_client, database, options, start)
    assert seen.operations() == ["insert"]
    assert seen.error == TOO_LARGE
