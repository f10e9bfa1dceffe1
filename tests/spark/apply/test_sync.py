"""The job: tables equal to the source after a load, after changes, and after any rewind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable
from pymongo import MongoClient
from pyspark.sql import SparkSession
from tests.support.change_streams import now, server_stream, settle
from tests.support.crud_workload import run_crud
from tests.support.lake import TestLake, source_documents
from tests.support.source_rows import events_of_rows

from tailrace.embedded import ReplicaSet
from tailrace.errors import CheckpointError, OperatorError, OptionError
from tailrace.spark.apply import control
from tailrace.spark.apply.applier import WRITER
from tailrace.spark.fields import FieldRules
from tailrace.spark.lake import Commit
from tailrace.spark.target import held

pytestmark = pytest.mark.xdist_group("spark")

Client = MongoClient[dict[str, Any]]
OPERATIONS = 400


@pytest.fixture
def target(
    spark: SparkSession, mongodb: ReplicaSet, mongodb_client: Client, tmp_path: Path
) -> TestLake:
    return TestLake(spark, mongodb.uri, tmp_path / "lake")


def test_a_load_and_what_follows_give_the_source_byte_for_byte(
    target: TestLake, mongodb_client: Client, database_name: str
) -> None:
    database = mongodb_client[database_name]
    namespaces = [f"{database_name}.*"]
    run_crud(database, 1, OPERATIONS)
    database.create_collection("view", viewOn="one", pipeline=[])
    told = target.sync(namespaces=namespaces)
    assert list(told.left_out) == [f"{database_name}.view"]
    assert target.documents() == source_documents(mongodb_client, database_name)

    start = now(mongodb_client)
    run_crud(database, 2, OPERATIONS)
    database.one.drop()
    run_crud(database, 3, OPERATIONS)
    database.two.rename("three")
    run_crud(database, 4, OPERATIONS)
    database.three.rename("one", dropTarget=True)
    until = settle(mongodb_client)
    assert not target.sync(namespaces=namespaces).loads, "loaded once"
    expected = source_documents(mongodb_client, database_name)
    assert target.documents() == expected
    assert target.verify().equal

    seen = server_stream(mongodb_client, None, {"startAtOperationTime": start}, until=until).events
    theirs = [each for each in seen if database_name.encode() in each]
    changes = target.lake.read("changes").orderBy("token").collect()
    assert events_of_rows(changes)[-len(theirs) :] == theirs

    for row in target.tables().values():
        table = DeltaTable(str(target.folder / row.table))
        assert table.version() == row.version
        found = table.to_pyarrow_table(columns=["bson", "document_key", "document", "token"])
        assert sorted(found["bson"].to_pylist()) == expected.get(str(row.namespace), [])


def test_a_batch_that_comes_again_changes_nothing(
    target: TestLake, mongodb_client: Client, database_name: str
) -> None:
    namespaces = [f"{database_name}.*"]
    database = mongodb_client[database_name]
    run_crud(database, 5, OPERATIONS)
    small = {"maxEventsPerBatch": "150"}
    target.sync(namespaces=namespaces)
    run_crud(database, 6, OPERATIONS)
    database.two.drop()
    target.sync(namespaces=namespaces, source=small)
    expected = source_documents(mongodb_client, database_name)
    assert target.documents() == expected
    before = target.versions()
    events = target.lake.read("changes").count()
    for forget in (lambda: target.rewind(2), target.forget_commits, target.forget_checkpoint):
        forget()
        target.sync(namespaces=namespaces, source=small)
        assert target.versions() == before
    run_crud(database, 7, 50)
    target.rewind(1)
    target.sync(namespaces=namespaces)
    assert target.documents() == source_documents(mongodb_client, database_name)
    changes = target.lake.read("changes")
    assert changes.count() > events
    assert changes.select("shard", "token").distinct().count() == changes.count()


def test_tables_meet_again_when_the_driver_died_between_two_of_them(
    target: TestLake, mongodb_client: Client, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespaces = [f"{database_name}.*"]
    database = mongodb_client[database_name]
    for name in ("a", "b"):
        database[name].insert_many([{"_id": number} for number in range(20)])
    target.sync(namespaces=namespaces)
    for name in ("a", "b"):
        database[name].update_many({}, {"$inc": {"n": 1}})
    merge = type(target.lake).merge

    def dies(lake: Any, table: str, changes: Any, commit: Any) -> None:
        if table.endswith(".b"):
            raise OperatorError("the driver died here")
        merge(lake, table, changes, commit)

    with monkeypatch.context() as patch:
        patch.setattr(type(target.lake), "merge", dies)
        with pytest.raises(OperatorError, match="died here"):
            target.sync(namespaces=namespaces)
    ahead = target.lake.version(f"current/{database_name}.a")
    database.a.update_many({}, {"$inc": {"n": 1}})
    target.sync(namespaces=namespaces)
    assert target.lake.version(f"current/{database_name}.a") > ahead
    assert target.documents() == source_documents(mongodb_client, database_name)


def test_a_target_is_one_querys_and_one_sources(
    target: TestLake, mongodb_client: Client, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mongodb_client[database_name].a.insert_one({"_id": 1})
    target.sync(namespaces=[f"{database_name}.*"])
    with pytest.raises(OptionError, match="--namespaces"):
        target.sync(namespaces=["other.*"])
    with ReplicaSet() as other, pytest.raises(CheckpointError, match="another source"):
        TestLake(target.spark, other.uri, target.folder).sync(namespaces=[f"{database_name}.*"])
    monkeypatch.setattr("tailrace.spark.target.LOCK_PATIENCE_S", 0.1)
    with held(target.spark, str(target.folder)), pytest.raises(OperatorError, match="in use"):
        target.sync(namespaces=[f"{database_name}.*"])
    assert target.lake.last_number("control", WRITER) == target.rows["changes"].cut


def test_verify_lists_the_keys_that_differ(
    target: TestLake, mongodb_client: Client, database_name: str
) -> None:
    collection = mongodb_client[database_name].a
    collection.insert_many([{"_id": number} for number in range(100)])
    target.sync(namespaces=[f"{database_name}.*"])
    (row,) = target.tables().values()
    table = SparkTable.forPath(target.spark, str(target.folder / row.table))
    table.delete('document_key = \'{"_id": {"$numberInt": "7"}}\'')
    table.update('document_key = \'{"_id": {"$numberInt": "8"}}\'', {"bson": "unhex('00')"})
    changed = replace(row, version=target.lake.version(row.table))
    control.write_rows(target.spark, target.lake, [changed], Commit("test", 1))
    report = target.verify()
    assert not report.equal
    assert [how for _, how in report.tables[0].keys] == ["missing", "different"]


def test_soft_deletes_and_hidden_fields_hold_from_load_to_update(
    target: TestLake, mongodb_client: Client, database_name: str
) -> None:
    collection = mongodb_client[database_name].people
    secret = {"card": "4000-1234", "mail": "x@secret.org"}
    collection.insert_many([{"_id": number, "n": 0, **secret} for number in range(3)])
    options: dict[str, Any] = {
        "namespaces": [f"{database_name}.*"],
        "soft_deletes": True,
        "fields": FieldRules(drop=("card",), hash=("mail",)),
    }
    target.sync(**options)
    collection.update_one({"_id": 0}, {"$set": {"n": 1, "mail": "y@secret.org", "card": "5000-1"}})
    collection.delete_one({"_id": 1})
    collection.insert_one({"_id": 4, **secret})
    target.sync(**options)
    (row,) = target.tables().values()
    rows = {each["document_key"]: each for each in target.lake.read(row.table).collect()}
    assert [each["deleted"] for _, each in sorted(rows.items())] == [False, True, False, False]
    assert target.verify().equal
    everything = [
        str(each) for name in (row.table, "changes") for each in target.lake.read(name).collect()
    ]
    assert not [each for each in everything if "secret.org" in each or "4000-1234" in each]
