"""A sharded cluster without a mongos: its catalog, and documents where it says they are."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest
from bson.max_key import MaxKey
from bson.min_key import MinKey
from pymongo import MongoClient
from pymongo.errors import OperationFailure
from tests.support.dev_servers import DevServer
from tests.support.mongodb import TLS
from tests.support.waiting import eventually

from tailrace.embedded import ShardedCluster
from tailrace.errors import OptionError

pytestmark = pytest.mark.xdist_group("cluster")


def keys_on(cluster: ShardedCluster, shard: str, namespace: str) -> list[int]:
    database, _, collection = namespace.partition(".")
    client = cluster.shards[shard].client()
    return sorted(document["k"] for document in client[database][collection].find())


def owners(cluster: ShardedCluster, namespace: str) -> list[tuple[object, object, str]]:
    return [
        (owned.lower["k"], owned.upper["k"], owned.shard)
        for owned in cluster.catalog.ranges(namespace)
    ]


def test_the_config_server_knows_the_shards(cluster: ShardedCluster) -> None:
    assert cluster.catalog.shards() == {
        name: f"{name}/{shard.hosts}" for name, shard in cluster.shards.items()
    }


def test_a_database_is_where_it_was_asked_to_be(cluster: ShardedCluster) -> None:
    cluster.create_database("elsewhere", "s2")
    assert cluster.catalog.database("elsewhere").primary == "s2"
    cluster.drop_database("elsewhere")
    with pytest.raises(OptionError, match="no database elsewhere"):
        cluster.catalog.database("elsewhere")


def test_a_moved_range_takes_its_documents_along(
    cluster: ShardedCluster, cluster_database: str
) -> None:
    namespace = f"{cluster_database}.things"
    cluster.shard_collection(namespace, {"k": 1})
    things = cluster.shards["s1"].client()[cluster_database].things
    things.insert_many([{"k": k} for k in range(10)])
    cluster.move_range(namespace, "s2", {"k": 6})
    assert owners(cluster, namespace) == [(MinKey(), 6, "s1"), (6, MaxKey(), "s2")]
    assert keys_on(cluster, "s2", namespace) == [6, 7, 8, 9]
    eventually(lambda: keys_on(cluster, "s1", namespace) == [*range(6)], "the old ones are gone")
    cluster.move_range(namespace, "s1", {"k": 6})
    assert {shard for *_, shard in owners(cluster, namespace)} == {"s1"}


def test_a_hashed_collection_lies_on_every_shard(
    cluster: ShardedCluster, cluster_database: str
) -> None:
    namespace = f"{cluster_database}.spread"
    cluster.shard_collection(namespace, {"k": "hashed"})
    assert {shard for *_, shard in owners(cluster, namespace)} == set(cluster.shards)


def test_a_collection_that_is_not_sharded_cannot_move(
    cluster: ShardedCluster, cluster_database: str
) -> None:
    with pytest.raises(OptionError, match="things is not sharded"):
        cluster.move_range(f"{cluster_database}.things", "s2")


def test_a_shard_that_joins_takes_a_range_and_users_get_in_everywhere(
    start_cluster: Callable[..., ShardedCluster],
) -> None:
    cluster = start_cluster(1, auth=True, tls=TLS)
    shard = cluster.add_shard()
    assert list(cluster.catalog.shards()) == ["s1", "s2"] == list(cluster.shards)
    cluster.create_database("shop", "s1")
    cluster.shard_collection("shop.things", {"k": 1})
    cluster.shards["s1"].client().shop.things.insert_one({"k": 1})
    cluster.move_range("shop.things", "s2")
    assert keys_on(cluster, shard.name, "shop.things") == [1]
    with pytest.raises(OperationFailure) as raised, MongoClient(shard.uri_as(None)) as nobody:
        nobody.shop.things.find_one()
    assert raised.value.code == 13


def test_nothing_is_left_of_tailrace_dev_up_after_a_kill(dev_up: Callable[..., DevServer]) -> None:
    server = dev_up("sharded")
    with MongoClient(server.uri) as client:
        assert [shard["_id"] for shard in client.config.shards.find()] == ["s1", "s2"]
    assert len(server.pids) == 3
    server.end(signal.SIGKILL)
    eventually(lambda: not server.traces(), "servers and folders gone")
