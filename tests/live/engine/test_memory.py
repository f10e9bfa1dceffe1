"""A live stream takes as much memory as it ever takes after its first events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pymongo import MongoClient, WriteConcern
from pymongo.database import Database
from tests.support.change_streams import now, settle
from tests.support.effort import effort
from tests.support.memory_probe import WARM, growth

from tailrace.embedded import ReplicaSet

Client = MongoClient[dict[str, Any]]
Base = Database[dict[str, Any]]
EVENTS = effort(100_000)
BATCH = 10_000
FLAT_MIB = 16
"""One batch of the log: the second half may begin where none was in memory."""
ENTRY_MIB = 16
"""What an oplog entry may take; PyMongo alone holds six at a time when it receives one."""


def watched(
    mongodb: ReplicaSet, database: Base, start: Any, events: int, warm: int = WARM
) -> float:
    """How much memory a stream of so many events takes beyond the first of them, in MiB."""
    words = (mongodb.uri, database.name, start.time, start.inc, events, warm)
    grown = growth("live", *map(str, words))
    assert grown.events == events
    return grown.mib


def fill(database: Base, count: int) -> None:
    """Insert documents of some 250 bytes."""
    collection = database.get_collection("filled", write_concern=WriteConcern(1))
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        collection.insert_many(
            [{"_id": at, "text": "x" * 200, "count": 1} for at in numbers], ordered=False
        )


def test_memory_stays_flat_over_any_number_of_events(
    mongodb: ReplicaSet, mongodb_client: Client, database: Base
) -> None:
    start = now(mongodb_client)
    fill(database, EVENTS)
    settle(mongodb_client)
    assert watched(mongodb, database, start, EVENTS, warm=EVENTS // 2) < FLAT_MIB


def test_a_transaction_of_100_mb_takes_a_few_times_one_entry(
    start_replica_set: Callable[..., ReplicaSet],
) -> None:
    replica_set = start_replica_set(cache_gb=3)  # a smaller cache refuses it at times
    client = replica_set.client()
    start = now(client)
    fill(client.shop, 2 * WARM)
    large = client.shop.create_collection("large")
    with client.start_session() as session, session.start_transaction():
        for at in range(100):
            large.insert_one({"_id": at, "data": bytes(1 << 20)}, session=session)
    settle(client)
    assert watched(replica_set, client.shop, start, 2 * WARM + 100) < 6 * ENTRY_MIB
