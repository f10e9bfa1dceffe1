"""The tables at a cut are a snapshot of the source: no transaction is ever torn."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pyspark.sql import SparkSession
from tests.support.bank import ACCOUNTS, BALANCE, Bank
from tests.support.effort import effort
from tests.support.lake import Quiet, TestLake
from tests.support.waiting import eventually

from tailrace.embedded import ReplicaSet
from tailrace.spark.apply import control
from tailrace.spark.load.reading import RangeReader
from tailrace.spark.sync import Sync, SyncOptions

pytestmark = pytest.mark.xdist_group("spark")

BATCHES = effort(6)
WITHIN_S = 300.0
SAMPLED_CUTS = 3


def test_the_sum_of_all_accounts_is_the_same_at_every_cut(
    spark: SparkSession,
    mongodb: ReplicaSet,
    mongodb_client: MongoClient[dict[str, Any]],
    database_name: str,
    tmp_path: Path,
) -> None:
    target = TestLake(spark, mongodb.uri, tmp_path / "lake")
    bank = Bank(mongodb_client, database_name, 1)
    target.sync(namespaces=[f"{database_name}.*"])
    options = SyncOptions(
        uri=mongodb.uri,
        to=str(target.folder),
        namespaces=[f"{database_name}.*"],
        interval="200 milliseconds",
        source={"maxEventsPerBatch": "100"},
    )
    told, stopping = Quiet(), threading.Event()
    job = threading.Thread(target=lambda: Sync(spark, options, told).run(stopping))
    with bank:
        job.start()
        eventually(lambda: len(told.rows) >= BATCHES, "the batches are in", WITHIN_S * BATCHES)
    stopping.set()
    job.join(WITHIN_S)
    assert bank.held > 0
    cuts = consistent_cuts(target)
    assert len(cuts) >= BATCHES
    for cut in cuts:
        accounts = at_cut(target, cut)
        assert sum(map(len, accounts.values())) == ACCOUNTS
        balances = [bson.decode(raw)["balance"] for each in accounts.values() for raw in each]
        assert sum(balances) == ACCOUNTS * BALANCE, f"torn at {cut}"
    reader = RangeReader(mongodb_client)
    for cut in cuts[-SAMPLED_CUTS:]:
        theirs = {name: sorted(reader.at(name, cut)) for name in bank.names}
        assert at_cut(target, cut) == theirs, f"not the source at {cut}"


def consistent_cuts(target: TestLake) -> list[int]:
    """Every cut that ``control`` names."""
    rows = target.lake.read(control.CONTROL).where("table = 'changes' and state = 'consistent'")
    return sorted({row["cut"] for row in rows.collect()})


def at_cut(target: TestLake, cut: int) -> dict[str, list[bytes]]:
    """The tables as a reader of ``control`` has them at a cut."""
    rows = target.lake.read(control.CONTROL).where(f"cut <= {cut} and namespace is not null")
    last: dict[str, Any] = {}
    for row in rows.orderBy("cut", "written").collect():
        last[row["namespace"]] = row
    return {
        namespace: sorted(
            bytes(each["bson"]) for each in target.lake.read(row["table"], row["version"]).collect()
        )
        for namespace, row in last.items()
    }
