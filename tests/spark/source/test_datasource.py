"""The source under Spark itself: streams, batch reads, checkpoints and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pyspark.sql import DataFrame, Row, SparkSession
from tests.support.change_streams import now, server_stream, settle
from tests.support.source_rows import events_of_rows

from tailrace.embedded import ReplicaSet
from tailrace.spark.source.offsets import Offset, format_time

pytestmark = pytest.mark.xdist_group("spark")

Client = MongoClient[dict[str, Any]]
TIMEOUT_S = 120


@pytest.fixture
def start(mongodb_client: Client) -> bson.Timestamp:
    return now(mongodb_client)


@pytest.fixture
def options(mongodb: ReplicaSet, database_name: str, start: bson.Timestamp) -> dict[str, str]:
    return {
        "uri": mongodb.uri,
        "startAt": format_time(start.time << 32 | start.inc),
        "namespaces": f"{database_name}.*",
        "documents": "bson",
    }


@pytest.fixture
def drain(spark: SparkSession, tmp_path: Path) -> Callable[[dict[str, str]], list[Row]]:
    """Run a query to the end of what is there, and give all rows that it ever wrote."""

    def run(options: dict[str, str]) -> list[Row]:
        stream = spark.readStream.format("tailrace").options(**options).load()
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        assert query.awaitTermination(TIMEOUT_S)
        return ordered(spark.read.parquet(str(tmp_path / "rows")))

    return run


def ordered(rows: DataFrame) -> list[Row]:
    return sorted(rows.collect(), key=lambda row: row["token"])


def write(database: Database[Any], client: Client) -> None:
    database.one.insert_many([{"_id": number, "text": "a" * number} for number in range(200)])
    database.one.update_many({"_id": {"$lt": 5}}, {"$set": {"text": "b"}, "$unset": {"c": 1}})
    with client.start_session() as session, session.start_transaction():
        database.one.delete_one({"_id": 7}, session=session)
        database.two.insert_one({"_id": bson.Int64(7)}, session=session)
    database.two.rename("three")
    database.three.drop()
    database.one.drop()


def servers(client: Client, name: str, start: bson.Timestamp) -> list[bytes]:
    """The server's own events of a database."""
    until = settle(client)
    return server_stream(client, name, {"startAtOperationTime": start}, until=until).events


def test_a_stopped_and_restarted_query_holds_the_servers_stream_once(
    drain: Callable[[dict[str, str]], list[Row]],
    options: dict[str, str],
    start: bson.Timestamp,
    database: Database[Any],
    mongodb_client: Client,
    tmp_path: Path,
) -> None:
    write(database, mongodb_client)
    settle(mongodb_client)
    drain({**options, "maxEventsPerBatch": "50"})
    write(database, mongodb_client)
    expected = servers(mongodb_client, database.name, start)
    rows = drain({**options, "startAt": "now", "slices": "2"})
    assert events_of_rows(row.asDict(recursive=True) for row in rows) == expected
    written = sorted((tmp_path / "checkpoint/offsets").glob("[0-9]*"), key=lambda p: int(p.name))
    offsets = [Offset.parse(path.read_text("utf-8").splitlines()[-1]) for path in written]
    assert len(offsets) > 4
    assert [offset.cut for offset in offsets] == sorted({offset.cut for offset in offsets})
    assert [offset.began is not None for offset in offsets] == [True] + [False] * (len(offsets) - 1)


def test_a_range_is_read_as_a_batch(
    spark: SparkSession,
    options: dict[str, str],
    start: bson.Timestamp,
    database: Database[Any],
    mongodb_client: Client,
) -> None:
    write(database, mongodb_client)
    expected = servers(mongodb_client, database.name, start)
    until = settle(mongodb_client)
    database.later.insert_one({})
    end = format_time(until.time << 32 | until.inc)
    read = spark.read.format("tailrace").options(**options, endAt=end).load()
    rows = ordered(read)
    assert events_of_rows(row.asDict(recursive=True) for row in rows) == expected


def test_documents_are_canonical_json_unless_bytes_are_asked_for(
    spark: SparkSession, options: dict[str, str], database: Database[Any], mongodb_client: Client
) -> None:
    database.one.insert_one({"_id": bson.Int64(5), "a": 1.5})
    settle(mongodb_client)
    row = spark.read.format("tailrace").options(**{**options, "documents": "json"}).load().first()
    assert row is not None
    assert json.loads(row["full_document"]) == {
        "_id": {"$numberLong": "5"},
        "a": {"$numberDouble": "1.5"},
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"namespace": "a.b"}, "is namespaces meant"),
        ({"fullDocument": "updateLookup"}, "raw diff"),
        ({"startAt": "Timestamp(4000000000, 1)"}, "not reached yet"),
    ],
)
def test_a_wrong_option_ends_the_query_with_its_reason(
    spark: SparkSession, options: dict[str, str], wrong: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        spark.read.format("tailrace").options(**{**options, **wrong}).load().collect()


def test_a_checkpoint_of_another_set_is_refused(
    drain: Callable[[dict[str, str]], list[Row]],
    options: dict[str, str],
    database: Database[Any],
    mongodb_client: Client,
    start_replica_set: Callable[..., ReplicaSet],
) -> None:
    database.one.insert_one({})
    settle(mongodb_client)
    assert len(drain(options)) == 1
    other = start_replica_set()
    with pytest.raises(Exception, match="checkpoint is of another source"):
        drain({**options, "uri": other.uri})
