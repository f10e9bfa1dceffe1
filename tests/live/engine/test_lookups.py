"""Which document a look-up finds once its collection is another: by release, as the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.database import Database
from tests.support.change_streams import differences, engine_stream, now, server_stream, settle
from tests.support.live_recordings import record

from tailrace.event.shape import Shape, parse_version

Client = MongoClient[dict[str, Any]]
Base = Database[dict[str, Any]]
OLD, NEW = {"_id": 1, "a": 1}, {"_id": 1, "new": 1}


def made_again(client: Client, database: Base) -> None:
    database.things.drop()
    database.things.insert_one(NEW)


def renamed(client: Client, database: Base) -> None:
    database.things.rename("others")


def renamed_and_made_again(client: Client, database: Base) -> None:
    database.things.rename("others")
    database.things.insert_one(NEW)


def in_another_database(client: Client, database: Base) -> None:
    to = f"{database.name}_other.things"
    client.admin.command("renameCollection", database.things.full_name, to=to)
    client.drop_database(f"{database.name}_other")


def gone(client: Client, database: Base) -> None:
    database.things.drop()


FATES: list[tuple[Callable[[Client, Base], None], Any, Any, Any]] = [
    (made_again, None, NEW, None),
    (renamed, OLD, None, None),
    (renamed_and_made_again, OLD, NEW, None),
    (in_another_database, None, None, None),
    (gone, None, None, None),
]
"""What is found by releases that follow a UUID, by name, and by both."""


@pytest.mark.parametrize("matches_uuid", [False, True])
@pytest.mark.parametrize(("fate", "followed", "by_name", "by_both"), FATES)
def test_a_look_up_finds_what_the_server_finds(
    mongodb_client: Client,
    database: Base,
    fate: Callable[[Client, Base], None],
    followed: Any,
    by_name: Any,
    by_both: Any,
    matches_uuid: bool,
) -> None:
    version = mongodb_client.server_info()["version"]
    shape = Shape(parse_version(version), matches_uuid=matches_uuid)
    start = now(mongodb_client)
    database.things.insert_one({"_id": 1, "a": 0})
    database.things.update_one({"_id": 1}, {"$set": {"a": 1}})
    fate(mongodb_client, database)
    until = settle(mongodb_client)
    options: dict[str, Any] = {"fullDocument": "updateLookup", "startAtOperationTime": start}
    if matches_uuid:
        options["matchCollectionUUIDForUpdateLookup"] = True
    theirs = server_stream(mongodb_client, database.name, options, until=until)
    ours = engine_stream(mongodb_client, database.name, options, until=until)
    replayed = record(mongodb_client, start, until, database.name).replay(database.name, options)
    assert not differences(ours.events, theirs.events)
    assert not differences(replayed.events, theirs.events)
    assert ours.error == theirs.error == replayed.error
    if matches_uuid and shape.follows_renames:
        assert theirs.error == (40415, "Location40415"), "the option came with look-ups by name"
        return
    found = bson.decode(theirs.events[1])["fullDocument"]
    wanted = followed if shape.follows_renames else by_both if matches_uuid else by_name
    assert found == wanted
