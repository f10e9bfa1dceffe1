"""What DDL does to the tables, against the server: collections made anew, or capped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pyspark.sql import SparkSession
from tests.support.lake import TestLake, source_documents

from tailrace.embedded import ReplicaSet
from tailrace.spark.apply import control

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def target(spark: SparkSession, mongodb: ReplicaSet, tmp_path: Path) -> TestLake:
    return TestLake(spark, mongodb.uri, tmp_path / "lake")


def test_a_collection_that_is_made_anew_four_times_loses_nothing(
    target: TestLake, mongodb_client: MongoClient[dict[str, Any]], database_name: str
) -> None:
    collection = mongodb_client[database_name].orders
    namespaces = [f"{database_name}.*"]
    collection.insert_one({"_id": "loaded"})
    target.sync(namespaces=namespaces)
    inserted = 0
    for generation in range(4):
        for number in range(100):
            collection.insert_one({"_id": f"{generation}-{number}"})
            inserted += 1
        collection.drop()
        for number in range(50):
            collection.insert_one({"_id": f"after-{generation}-{number}"})
            inserted += 1
        if generation % 2:
            target.sync(namespaces=namespaces)
    changes = target.lake.read("changes")
    assert changes.where("operation = 'insert'").count() == inserted
    assert changes.where("operation = 'drop'").count() == 4
    assert target.documents() == source_documents(mongodb_client, database_name)


def test_a_collection_that_becomes_capped_is_said_to_be_incomplete(
    target: TestLake, mongodb_client: MongoClient[dict[str, Any]], database_name: str
) -> None:
    database = mongodb_client[database_name]
    namespaces = [f"{database_name}.*"]
    database.log.insert_many([{"_id": number} for number in range(3)])
    target.sync(namespaces=namespaces)
    database.later.insert_one({"_id": 1})
    for name in ("log", "later"):
        database.command("convertToCapped", name, size=8192)
    database.log.update_one({"_id": 1}, {"$set": {"n": 1}})
    database.log.insert_one({"_id": 4})
    target.sync(namespaces=namespaces)
    assert states(target) == {control.INCOMPLETE: 2}
    database.later.update_one({"_id": 1}, {"$set": {"n": 1}})
    target.sync(namespaces=namespaces)
    for name in ("log", "later"):
        database[name].drop()
        database[name].insert_one({"_id": 5})
    target.sync(namespaces=namespaces)
    assert states(target) == {control.CONSISTENT: 2}
    assert target.documents() == source_documents(mongodb_client, database_name)


def states(target: TestLake) -> dict[str, int]:
    return Counter(row.state for row in target.tables().values())
