"""Transactions over shards: whole, once, in token order, whoever commits them and when."""

from __future__ import annotations

from collections import Counter
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.change_streams import Seen, differences
from tests.support.cluster_streams import (
    cluster_now,
    in_one_order,
    merged_stream,
    read_until,
    settled,
    shards_merged,
)

import tailrace
from tailrace.embedded import ShardedCluster

pytestmark = pytest.mark.xdist_group("changing-cluster")

Client = MongoClient[dict[str, Any]]
LARGE = 6 << 20


@pytest.fixture(scope="module")
def three() -> Any:
    with ShardedCluster(3, noop_interval_s=1) as cluster:
        yield cluster


@pytest.fixture
def config(three: ShardedCluster) -> Client:
    return three.config.client()


@pytest.fixture
def namespace(three: ShardedCluster, request: pytest.FixtureRequest) -> str:
    """A collection whose keys up to -200 are on s1, up to -100 on s2, and the rest on s3."""
    name = f"{request.node.originalname[:40]}.things"
    three.create_database(name.partition(".")[0], "s1")
    three.shard_collection(name, {"_id": 1})
    three.move_range(name, "s2", {"_id": -200}, {"_id": -100})
    three.move_range(name, "s3", {"_id": -100})
    return name


def keys(seen: Seen) -> list[int]:
    return [bson.decode(event)["documentKey"]["_id"] for event in seen.events]


def check(three: ShardedCluster, namespace: str, start: Any, seen: Seen) -> None:
    until = settled(three)
    theirs = shards_merged(three, namespace, {"startAtOperationTime": start}, until)
    assert not differences(in_one_order(seen.events), in_one_order(theirs))


def test_transactions_come_whole_in_the_order_of_their_tokens(
    three: ShardedCluster, config: Client, namespace: str
) -> None:
    start = cluster_now(three)
    first, second, third, aborted = (three.transaction() for _ in range(4))
    with first, second, third, aborted:
        first.insert(namespace, {"_id": -300}, {"_id": -150})
        second.insert(namespace, {"_id": -301}, {"_id": -151}, {"_id": -51})
        aborted.insert(namespace, {"_id": -302}, {"_id": -152})
        third.insert(namespace, {"_id": -303}, {"_id": -153}, {"_id": -53})
        first.prepare()
        second.prepare()
        aborted.prepare()
        second.commit_prepared()
        third.commit()
        aborted.abort()
        first.commit_prepared()
    three.insert(namespace, {"_id": -1})
    seen = merged_stream(config, namespace, {"startAtOperationTime": start}, settled(three))
    assert Counter(keys(seen)) == Counter([-300, -150, -301, -151, -51, -303, -153, -53, -1])
    assert keys(seen)[-1] == -1
    check(three, namespace, start, seen)


def test_a_stream_that_stops_within_an_open_prepare_loses_nothing(
    three: ShardedCluster, config: Client, namespace: str
) -> None:
    start = cluster_now(three)
    with three.transaction() as transaction:
        transaction.insert(namespace, {"_id": -310}, {"_id": -160})
        transaction.prepare()
        three.insert(namespace, {"_id": -311})
        before = merged_stream(config, namespace, {"startAtOperationTime": start}, settled(three))
        assert keys(before) == [-311], "an open prepare holds nothing back"
        transaction.commit_prepared()
    rest = merged_stream(config, namespace, {"startAfter": before.token}, settled(three))
    assert sorted(keys(rest)) == [-310, -160]
    before.events += rest.events
    check(three, namespace, start, before)


def test_a_transaction_of_more_than_16_mb_is_taken_apart(
    three: ShardedCluster, config: Client, namespace: str
) -> None:
    start = cluster_now(three)
    with tailrace.open_oplog(config, namespace, max_await_ms=200) as stream:
        with three.transaction() as transaction:
            for number in range(3):
                transaction.insert(namespace, {"_id": -400 - number, "x": "x" * LARGE})
                transaction.insert(namespace, {"_id": -170 - number, "x": "x" * LARGE})
            transaction.commit()
        seen = read_until(stream, Seen(), settled(three))
    assert sorted(keys(seen)) == [-402, -401, -400, -172, -171, -170]
    check(three, namespace, start, seen)
