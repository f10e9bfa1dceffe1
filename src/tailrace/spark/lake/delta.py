"""Delta tables on any path that Hadoop can write.

A commit's writer and number are Delta's own transaction identifier: the log keeps the
last number of each writer, and skips what is not above it. Table features are left at
the oldest protocol (no deletion vectors), so that any Delta reader reads them.
"""

from __future__ import annotations

from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession

from tailrace.spark.lake.port import Commit

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"
"""The jar that fits the pinned ``delta-spark``."""
SESSION_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
"""What a session needs; a log of a few files is not worth fifty tasks."""
TABLE_PROPERTIES = {
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.dataSkippingNumIndexedCols": "6",
}
"""Keys, tokens and times stand among the first columns and are worth statistics."""
_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"


class DeltaLake:
    """The Delta tables below one path."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self._spark = spark
        self.root = root.rstrip("/")

    def path(self, table: str) -> str:
        """Where a table's folder is."""
        return f"{self.root}/{table}"

    def exists(self, table: str) -> bool:
        """Whether the table has a first commit."""
        return bool(self._snapshot(table).version() >= 0)

    def last_number(self, table: str, writer: str) -> int | None:
        """The number of this writer's last commit; None before its first."""
        found = self._snapshot(table).transactions().get(writer)
        return int(found.get()) if found.isDefined() else None

    def version(self, table: str) -> int:
        """The number of the table's newest version."""
        return int(self._snapshot(table).version())

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """The rows of the newest version, or of a certain one."""
        reader = self._spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.path(table))

    def append(self, table: str, rows: DataFrame, commit: Commit) -> None:
        """Add rows; the first write makes the table."""
        self._write(table, rows, commit, "append")

    def replace(self, table: str, rows: DataFrame, commit: Commit) -> None:
        """Let these rows be all there are."""
        self._write(table, rows, commit, "overwrite")

    def merge(self, table: str, changes: DataFrame, commit: Commit) -> None:
        """Put rows in by ``key``, over the row of that key or new; ``gone`` ones go away."""
        session = changes.sparkSession.newSession()
        session.conf.set(_APP_ID, commit.writer)
        session.conf.set(_VERSION, str(commit.number))
        target = DeltaTable.forPath(session, self.path(table))
        columns: dict[str, str | Column] = {
            name: f"s.{name}" for name in changes.columns if name != "gone"
        }
        (
            target.alias("t")
            .merge(changes.alias("s"), "t.key = s.key")
            .whenMatchedDelete("s.gone")
            .whenMatchedUpdate(set=columns)
            .whenNotMatchedInsert("not s.gone", values=columns)
            .execute()
        )

    def compact(self, table: str) -> None:
        """Join small files."""
        DeltaTable.forPath(self._spark, self.path(table)).optimize().executeCompaction()

    def vacuum(self, table: str, keep_hours: float) -> None:
        """Delete what no version of the last hours needs."""
        DeltaTable.forPath(self._spark, self.path(table)).vacuum(keep_hours)

    def _write(self, table: str, rows: DataFrame, commit: Commit, mode: str) -> None:
        (
            rows.write.format("delta")
            .mode(mode)
            .options(**TABLE_PROPERTIES)
            .option("txnAppId", commit.writer)
            .option("txnVersion", str(commit.number))
            .save(self.path(table))
        )

    def _snapshot(self, table: str) -> Any:
        """The table's newest state, asked of Delta's log."""
        java: Any = self._spark._jvm
        log = java.org.apache.spark.sql.delta.DeltaLog.forTable(
            self._spark._jsparkSession, self.path(table)
        )
        nothing = java.scala.Option.empty()
        return log.update(False, nothing, nothing)
