"""What DDL does to the tables, against the server: collections made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pyspark.sql import SparkSession
from tests.support.lake import TestLake, source_documents

from tailrace.embedded import ReplicaSet

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
