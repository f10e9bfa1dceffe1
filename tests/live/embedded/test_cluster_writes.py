"""Writes of a cluster: on their owner, logged with the shard key, whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from bson import Timestamp
from pymongo.errors import OperationFailure
from tests.support.mongodb import RESHARDS

from tailrace.embedded import ShardedCluster
from tailrace.errors import OptionError

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def things(cluster: ShardedCluster, cluster_database: str) -> Iterator[str]:
    """A collection by ``k``: below 50 on s1, from 50 on s2."""
    namespace = f"{cluster_database}.things"
    cluster.shard_collection(namespace, {"k": 1})
    cluster.move_range(namespace, "s2", {"k": 50})
    return namespace


def owned(cluster: ShardedCluster, namespace: str) -> dict[str, list[Any]]:
    """The ids that each shard shows a mongos: what it stores and does not own is left out."""
    database, _, collection = namespace.partition(".")
    found = {}
    for shard, versions in cluster.catalog.versions(namespace).items():
        client = cluster.shards[shard].client()
        answer = client[database].command("find", collection, sort={"_id": 1}, **versions)
        found[shard] = [document["_id"] for document in answer["cursor"]["firstBatch"]]
    return found


def logged(cluster: ShardedCluster, shard: str, namespace: str) -> list[tuple[str, Any]]:
    entries = cluster.shards[shard].client().local["oplog.rs"]
    return [(entry["op"], entry["o2"]) for entry in entries.find({"ns": namespace, "op": "i"})]


def two(low: int, high: int) -> list[dict[str, int]]:
    return [{"_id": low, "k": low}, {"_id": high, "k": high}]


def test_an_insert_is_logged_with_the_shard_key(cluster: ShardedCluster, things: str) -> None:
    cluster.insert(things, {"_id": "a", "k": 1}, {"_id": "b", "k": 50})
    assert logged(cluster, "s1", things) == [("i", {"k": 1, "_id": "a"})]
    assert logged(cluster, "s2", things) == [("i", {"k": 50, "_id": "b"})]


def test_a_hashed_write_reaches_the_shard_that_owns_the_hash(
    cluster: ShardedCluster, cluster_database: str
) -> None:
    namespace = f"{cluster_database}.spread"
    cluster.shard_collection(namespace, {"_id": "hashed"})
    ids = [1, 2, 3.5, "four", None, {"five": 5}, *range(10, 20)]
    cluster.insert(namespace, *({"_id": each} for each in ids))
    found = owned(cluster, namespace)
    assert sum(map(len, found.values())) == len(ids)
    assert all(found.values())


def test_a_write_without_the_shard_key_reaches_every_owner(
    cluster: ShardedCluster, things: str
) -> None:
    assert cluster.update(things, {}, {"$set": {"seen": True}}, multi=True) == 0
    cluster.insert(things, *two(1, 60))
    assert cluster.update(things, {}, {"$set": {"seen": True}}, multi=True) == 2
    assert cluster.update(things, {"k": 60}, {"$set": {"seen": False}}) == 1
    assert cluster.delete(things, {"seen": True}, multi=True) == 1
    assert owned(cluster, things) == {"s1": [], "s2": [60]}


def test_writes_follow_a_range_that_moves(cluster: ShardedCluster, things: str) -> None:
    cluster.insert(things, {"_id": 1, "k": 55})
    cluster.move_range(things, "s1", {"k": 50}, {"k": 60})
    cluster.insert(things, {"_id": 2, "k": 55})
    assert owned(cluster, things) == {"s1": [1, 2], "s2": []}


def test_a_refused_write_is_an_error(cluster: ShardedCluster, things: str) -> None:
    cluster.insert(things, {"_id": 1, "k": 1})
    with pytest.raises(OperationFailure) as raised:
        cluster.insert(things, {"_id": 1, "k": 1})
    assert raised.value.code == 11000


def test_ranges_split_where_they_are_told_to(cluster: ShardedCluster, things: str) -> None:
    cluster.split(things, {"k": 10}, {"k": 20})
    assert [each.lower["k"] for each in cluster.catalog.ranges(things)][1:] == [10, 20, 50]


def test_refining_makes_the_key_longer(cluster: ShardedCluster, things: str) -> None:
    cluster.insert(things, *two(1, 60))
    cluster.refine(things, {"k": 1, "_id": 1})
    assert list(cluster.catalog.collection(things).key) == ["k", "_id"]


@pytest.mark.skipif(not RESHARDS, reason="resharding ends the Windows build under Wine")
def test_resharding_changes_the_key_and_keeps_the_documents(
    cluster: ShardedCluster, things: str
) -> None:
    cluster.insert(things, *two(1, 60))
    cluster.reshard(things, {"_id": 1})
    assert list(cluster.catalog.collection(things).key) == ["_id"]
    assert sorted(itertools.chain(*owned(cluster, things).values())) == [1, 60]


def test_a_renamed_collection_has_its_documents_and_a_dropped_one_is_gone(
    cluster: ShardedCluster, things: str
) -> None:
    cluster.insert(things, *two(1, 60))
    cluster.rename(things, f"{things}2")
    assert owned(cluster, f"{things}2") == {"s1": [1], "s2": [60]}
    cluster.drop(f"{things}2")
    with pytest.raises(OptionError, match="not sharded"):
        cluster.catalog.collection(f"{things}2")


def test_an_index_is_on_every_owner(cluster: ShardedCluster, things: str) -> None:
    database, _, collection = things.partition(".")

    def indexes() -> list[bool]:
        clients = [shard.client() for shard in cluster.shards.values()]
        return ["n_1" in client[database][collection].index_information() for client in clients]

    cluster.create_index(things, {"n": 1})
    assert indexes() == [True, True]
    cluster.drop_index(things, "n_1")
    assert indexes() == [False, False]


def test_a_coordinated_transaction_is_on_both_shards(cluster: ShardedCluster, things: str) -> None:
    with cluster.transaction() as transaction:
        transaction.insert(things, *two(1, 60))
        assert owned(cluster, things) == {"s1": [], "s2": []}
        assert transaction.participants == ["s1", "s2"]
        transaction.commit()
    assert owned(cluster, things) == {"s1": [1], "s2": [60]}


def test_a_transaction_of_one_shard_commits_without_a_second_phase(
    cluster: ShardedCluster, things: str
) -> None:
    with cluster.transaction() as transaction:
        transaction.insert(things, {"_id": 1, "k": 1})
        transaction.update(things, {"k": 1}, {"$set": {"a": 1}})
        transaction.commit()
    assert owned(cluster, things)["s1"] == [1]


def test_the_phases_by_hand_commit_at_one_time_on_both_shards(
    cluster: ShardedCluster, things: str
) -> None:
    with cluster.transaction() as transaction:
        transaction.insert(things, *two(-1, 60))
        earliest = transaction.prepare()
        assert isinstance(earliest, Timestamp)
        transaction.commit_prepared()
    for shard in cluster.shards.values():
        entry = shard.client().local["oplog.rs"].find_one({"o.commitTimestamp": earliest})
        assert entry is not None
        assert entry["ts"] > earliest
    assert owned(cluster, things) == {"s1": [-1], "s2": [60]}


@pytest.mark.parametrize("prepared", [False, True])
def test_an_aborted_transaction_leaves_nothing(
    cluster: ShardedCluster, things: str, prepared: bool
) -> None:
    with cluster.transaction() as transaction:
        transaction.insert(things, *two(-1, 60))
        if prepared:
            transaction.prepare()
            transaction.abort()
    assert owned(cluster, things) == {"s1": [], "s2": []}
