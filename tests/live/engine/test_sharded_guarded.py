"""A cluster with authentication: signed cluster times, and a user for the shards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.waiting import eventually

import tailrace
from tailrace.embedded import Login, ShardedCluster
from tailrace.embedded.users import create_user
from tailrace.errors import PrivilegeError

pytestmark = pytest.mark.xdist_group("guarded-cluster")

NAMESPACE = "guarded.things"
CATALOG = ({"role": "read", "db": "config"}, {"role": "read", "db": "local"})
SHARD = ({"role": "read", "db": "local"}, {"role": "read", "db": "guarded"})


@pytest.fixture(scope="module")
def guarded() -> Iterator[ShardedCluster]:
    with ShardedCluster(auth=True) as cluster:
        cluster.create_database("guarded", "s1")
        cluster.shard_collection(NAMESPACE, {"k": 1})
        cluster.move_range(NAMESPACE, "s2", {"k": 50})
        yield cluster


@pytest.fixture(scope="module")
def catalog_reader(guarded: ShardedCluster) -> MongoClient[Any]:
    return guarded.config.client(guarded.config.add_user("catalog", *CATALOG))


def on_every_shard(guarded: ShardedCluster, user: str, *roles: Any) -> dict[str, str]:
    login = Login(user)
    for shard in guarded.shards.values():
        create_user(shard.primary().client, login, roles)
    return {"username": login.user, "password": login.password}


def test_idle_shards_are_moved_on_with_signed_times(
    guarded: ShardedCluster, catalog_reader: MongoClient[Any]
) -> None:
    credentials = on_every_shard(guarded, "oplog_reader", *SHARD)
    with tailrace.open_oplog(
        catalog_reader,
        NAMESPACE,
        options={"fullDocument": "updateLookup"},
        shard_credentials=credentials,
        max_await_ms=200,
    ) as stream:
        started = time.monotonic()
        seen: list[bytes] = []
        for number in range(3):
            guarded.insert(NAMESPACE, {"_id": number, "k": number})
            eventually(lambda: seen.extend(stream.next_batch()[0]) or seen, "the insert")
            guarded.update(NAMESPACE, {"_id": number, "k": number}, {"$set": {"v": 1}})
            wanted = 2 * number + 2
            eventually(
                lambda wanted=wanted: seen.extend(stream.next_batch()[0]) or len(seen) >= wanted,
                "the update",
            )
        took_s = time.monotonic() - started
    assert took_s < 10, "only the periodic no-op moved the shards on"
    last = bson.decode(seen[-1])
    assert last["fullDocument"] == {"_id": 2, "k": 2, "v": 1}


def test_a_user_whom_a_shard_does_not_know_is_named(
    guarded: ShardedCluster, catalog_reader: MongoClient[Any]
) -> None:
    with pytest.raises(PrivilegeError) as refused:
        tailrace.open_oplog(catalog_reader)
    assert refused.value.shard in guarded.shards
    assert refused.value.user == "catalog"
    assert "shard_credentials" in str(refused.value)


def test_a_grant_that_a_shard_misses_is_named(
    guarded: ShardedCluster, catalog_reader: MongoClient[Any]
) -> None:
    credentials = on_every_shard(guarded, "too_little", {"role": "read", "db": "guarded"})
    with (
        tailrace.open_oplog(
            catalog_reader, NAMESPACE, shard_credentials=credentials, max_await_ms=200
        ) as stream,
        pytest.raises(PrivilegeError) as refused,
    ):
        eventually(lambda: stream.next_batch()[0], "a refusal")
    assert refused.value.user == "too_little"
    assert refused.value.grant == "the role read on the database local"
    assert refused.value.shard in guarded.shards
    assert credentials["password"] not in str(refused.value)
