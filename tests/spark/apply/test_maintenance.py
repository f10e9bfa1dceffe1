"""Upkeep of a target: fewer files, the same rows, and every named version still there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pyspark.sql import SparkSession
from tests.support.lake import TestLake, source_documents

from tailrace.embedded import ReplicaSet
from tailrace.spark.apply import control
from tailrace.spark.maintain import maintain_target

pytestmark = pytest.mark.xdist_group("spark")

Client = MongoClient[dict[str, Any]]


@pytest.fixture
def target(
    spark: SparkSession, mongodb: ReplicaSet, database_name: str, tmp_path: Path
) -> TestLake:
    return TestLake(spark, mongodb.uri, tmp_path / "lake")


def test_maintenance_keeps_the_rows_and_every_version_that_control_names(
    target: TestLake, mongodb_client: Client, database_name: str
) -> None:
    database = mongodb_client[database_name]
    for batch in range(3):
        database.a.insert_many([{"_id": batch * 10 + number} for number in range(10)])
        target.sync(namespaces=[f"{database_name}.*"])
    expected = source_documents(mongodb_client, database_name)
    named = maintain_target(target.spark, str(target.folder), keep_hours=24.0)
    assert f"current/{database_name}.a" in named
    assert target.documents() == expected
    rows = target.lake.read(control.CONTROL).where("version is not null").collect()
    for row in rows:
        target.lake.read(row["table"], row["version"]).count()
    database.a.delete_many({"_id": {"$lt": 5}})
    target.sync(namespaces=[f"{database_name}.*"])
    assert target.documents() == source_documents(mongodb_client, database_name)
