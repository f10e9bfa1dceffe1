"""The load as a job: ranges in waves, each wave one commit that counts what is finished.

A table's log keeps how many of its ranges are in, by the number of the load's last
commit; the ranges themselves stand in ``control``. So a killed load goes on with the
wave that it lost, and a finished one is never done again. Small collections are read
several at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pymongo import MongoClient
from pyspark.sql import SparkSession

from tailrace.spark.apply.fold import Row
from tailrace.spark.apply.keys import key_of
from tailrace.spark.apply.rows import CURRENT_ARROW, CURRENT_SCHEMA, record_batch, shown
from tailrace.spark.fields import FieldRules
from tailrace.spark.lake import Commit, Lake
from tailrace.spark.load import reading
from tailrace.spark.load.plan import CollectionPlan

LOADER = "tailrace/load"
"""The writer of a load's commits; numbered by the ranges that are in."""
TABLES_AT_ONCE = 4
ROWS_AT_ONCE = 5_000
WAVES_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class TableLoad:
    """A collection on its way into its table."""

    path: str
    plan: CollectionPlan


Progress = Callable[[str, int, int], None]
"""Called with a namespace, its finished ranges and all of them, by any thread."""


class Loader:
    """Loads collections into tables; for one target at a time."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        uri: str,
        fields: FieldRules,
        progress: Progress,
        stopping: threading.Event,
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._uri = uri
        self._fields = fields
        self._progress = progress
        self._stopping = stopping

    def run(self, tables: Sequence[TableLoad]) -> bool:
        """Load what is not loaded yet; False when told to stop before all was in."""
        with ThreadPoolExecutor(TABLES_AT_ONCE) as pool:
            running = [pool.submit(self._load, table) for table in tables]
        for table in running:
            table.result()
        return not self._stopping.is_set()

    def finished(self, table: TableLoad) -> int:
        """How many of a table's ranges are in."""
        return self._lake.last_number(table.path, LOADER) or 0

    def _load(self, table: TableLoad) -> None:
        ranges = table.plan.ranges
        wave = max(1, self._spark.sparkContext.defaultParallelism * WAVES_PER_CORE)
        done = self.finished(table)
        self._progress(table.plan.namespace, done, len(ranges))
        while done < len(ranges) and not self._stopping.is_set():
            some = ranges[done : done + wave]
            rows = self._spark.range(0, len(some), 1, numPartitions=len(some)).mapInArrow(
                read_ranges(self._uri, table.plan, some, self._fields), CURRENT_SCHEMA
            )
            done += len(some)
            self._lake.append(table.path, rows, Commit(LOADER, done))
            self._progress(table.plan.namespace, done, len(ranges))


def read_ranges(
    uri: str,
    plan: CollectionPlan,
    ranges: Sequence[tuple[bytes | None, bytes | None]],
    fields: FieldRules,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]:
    """The function that Spark maps over the numbers of the ranges."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with MongoClient[dict[str, Any]](uri, appname="tailrace") as client:
            reader = reading.RangeReader(client)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    found = reader.read(plan.namespace, plan.uuid, *ranges[number])
                    for start in range(0, len(found), ROWS_AT_ONCE):
                        some = found[start : start + ROWS_AT_ONCE]
                        yield record_batch([loaded(each, fields) for each in some], CURRENT_ARROW)

    return run


def loaded(read: reading.Read, fields: FieldRules) -> tuple[Any, ...]:
    """The row of a document that was read."""
    key = reading.key_of(read.document)
    row = Row(key, fields.document(read.document), read.time, None)
    return key_of(key), *shown(row)
