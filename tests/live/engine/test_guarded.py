"""A set with users and certificates: what a stream needs, and what is said when it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.mongodb import TLS
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import ReplicaSet
from tailrace.errors import PrivilegeError

pytestmark = pytest.mark.xdist_group("guarded")

READ_LOG = {"role": "read", "db": "local"}
READ_SHOP = {"role": "read", "db": "shop"}
SHOWS_ALL = {"fullDocument": "updateLookup", "fullDocumentBeforeChange": "whenAvailable"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[ReplicaSet]:
    with ReplicaSet(auth=True, tls=TLS, noop_interval_s=1) as replica_set:
        things = replica_set.client().shop.create_collection(
            "things", changeStreamPreAndPostImages={"enabled": True}
        )
        things.insert_one({"_id": 1})
        yield replica_set


def read(replica_set: ReplicaSet, *roles: Any, options: dict[str, Any]) -> list[bytes]:
    """The events of two writes, as a user with these roles sees them."""
    name = f"user{len(replica_set.client().admin.command('usersInfo')['users'])}"
    client = replica_set.client(replica_set.add_user(name, *roles))
    things = replica_set.client().shop.things
    events: list[bytes] = []
    with tailrace.open_oplog(client, "shop", options=options, max_await_ms=50) as stream:
        things.update_one({"_id": 1}, {"$inc": {"a": 1}})
        things.update_one({"_id": 1}, {"$inc": {"a": 1}})
        eventually(
            lambda: events.extend(stream.next_batch()[0]) or len(events) == 2, "both are seen"
        )
    return events


def test_the_role_read_on_local_is_enough_for_plain_events(guarded: ReplicaSet) -> None:
    assert len(read(guarded, READ_LOG, options={})) == 2


@pytest.mark.parametrize(
    ("roles", "options", "grant"),
    [
        ([READ_SHOP], {}, "the role read on the database local"),
        ([READ_LOG], {"fullDocument": "updateLookup"}, "the role read on the database shop"),
        (
            [READ_LOG, READ_SHOP],
            {"fullDocumentBeforeChange": "whenAvailable"},
            "the action find on config.system.preimages",
        ),
    ],
)
def test_a_missing_privilege_is_named(
    guarded: ReplicaSet, roles: list[Any], options: dict[str, Any], grant: str
) -> None:
    with pytest.raises(PrivilegeError) as refused:
        read(guarded, *roles, options=options)
    assert refused.value.grant == grant
    assert grant in str(refused.value)


def test_what_the_errors_ask_for_is_enough_for_everything(guarded: ReplicaSet) -> None:
    images = guarded.add_role(
        "images",
        {"resource": {"db": "config", "collection": "system.preimages"}, "actions": ["find"]},
    )
    assert len(read(guarded, READ_LOG, READ_SHOP, images, options=SHOWS_ALL)) == 2
