"""Whether the tables equal the source, document for document, at the tables' own cut.

The source is read by snapshot reads at the cut that ``control`` names last, on the
executors, as hashes of documents by key. Both sides are summed up over ranges of keys;
only where a range differs its keys are compared one by one. The server keeps some
minutes of history: tables that are older than that must be brought up to date first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tailrace.engine.source import probe
from tailrace.errors import OperatorError, TailraceError
from tailrace.oplog.deployment import Deployment, converted
from tailrace.raw.extended_json import canonical
from tailrace.spark import failures
from tailrace.spark.apply import control
from tailrace.spark.apply.control import CHANGES, CURRENT
from tailrace.spark.apply.keys import key_of
from tailrace.spark.apply.rows import record_batch
from tailrace.spark.fields import NOTHING_HIDDEN, FieldRules
from tailrace.spark.lake import DeltaLake
from tailrace.spark.load import reading
from tailrace.spark.load.plan import CollectionPlan, client_of, find_collections, plan_collection
from tailrace.spark.source.offsets import format_time
from tailrace.spark.target import root_of
from tailrace.stage.scope import Selection

KEYS_LISTED = 20
HASHES_AT_ONCE = 20_000
HASH_SCHEMA = "key STRING, hash STRING, shown STRING"
_HASHES = pa.schema([("key", pa.string()), ("hash", pa.string()), ("shown", pa.string())])
TOO_LATE = (
    "the source no longer knows how it was at {cut}, the tables' cut: bring the tables up to date "
    "(tailrace sync --once) and verify again"
)
DIFFERENT, MISSING, SUPERFLUOUS = "different", "missing", "superfluous"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """What is compared; the URI may hold a password and is not shown."""

    uri: str = field(repr=False)
    to: str
    salt: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table beside its collection."""

    namespace: str
    table: str
    documents: int
    differences: int
    keys: tuple[tuple[str, str], ...]
    """The first that differ: key as Extended JSON, and how."""


@dataclass(frozen=True, slots=True)
class Report:
    """All tables at one cut."""

    cut: int
    tables: tuple[TableReport, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not any(table.differences for table in self.tables)


def check_source(uri: str) -> None:
    """Look whether the source can be read, before Spark starts."""
    client = client_of(uri)
    try:
        probe(Deployment(client))
    finally:
        client.close()


def verify(
    spark: SparkSession, options: VerifyOptions, compared: Callable[[TableReport], None]
) -> Report:
    """Compare every table with its collection; each report as soon as it is there."""
    root = root_of(options.to)
    lake = DeltaLake(spark, root)
    rows = control.last_rows(lake)
    if CHANGES not in rows:
        raise OperatorError(f"there is nothing to verify at {root}: tailrace sync makes it")
    made_with = rows[CHANGES].detail
    cut = rows[CHANGES].cut
    if cut < made_with.get("complete_from", cut + 1):
        raise OperatorError("the load is not over: tailrace sync goes on with it")
    if not made_with["tables"]:
        raise OperatorError("this target has no tables: it was made with --no-load")
    client = client_of(options.uri)
    try:
        deployment = Deployment(client)
        comparison = Comparison(spark, lake, deployment, options, cut, _rules(made_with, options))
        reports = []
        for namespace, row in sorted(_sides(deployment, rows, made_with).items()):
            reports.append(comparison.compare(namespace, row))
            compared(reports[-1])
    except failures.SPARK_ERRORS as error:
        raise _too_late(failures.converted(error), cut) from error
    finally:
        client.close()
    return Report(cut, tuple(reports))


def _rules(made_with: Any, options: VerifyOptions) -> FieldRules:
    drop, hashed = tuple(made_with["dropFields"]), tuple(made_with["hashFields"])
    return FieldRules(drop, hashed, options.salt) if drop or hashed else NOTHING_HIDDEN


def _sides(
    deployment: Deployment, rows: dict[str, control.Row], made_with: Any
) -> dict[str, control.Row | None]:
    """Each namespace that is on either side, with the last row of its table."""
    tables = {row.namespace: row for path, row in rows.items() if path.startswith(CURRENT)}
    selection = Selection(made_with["namespaces"], made_with["excludeNamespaces"])
    sides: dict[str, control.Row | None] = {}
    for found in find_collections(deployment, lambda name: selection.collection(name.encode())):
        if not found.left_out:
            sides[found.namespace] = tables.get(found.namespace)
    for namespace, row in tables.items():
        if namespace is not None and row.state != control.LEFT_OUT:
            sides[namespace] = row
    return sides


def _too_late(error: TailraceError, cut: int) -> TailraceError:
    gone = getattr(error, "code", None) in reading.HISTORY_GONE
    return OperatorError(TOO_LATE.format(cut=format_time(cut))) if gone else error


class Comparison:
    """Compares collections with tables at one cut."""

    def __init__(
        self,
        spark: SparkSession,
        lake: DeltaLake,
        deployment: Deployment,
        options: VerifyOptions,
        cut: int,
        rules: FieldRules,
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._deployment = deployment
        self._uri = options.uri
        self._cut = cut
        self._rules = rules

    def compare(self, namespace: str, row: control.Row | None) -> TableReport:
        """One collection beside its table; a table that is not there has no rows."""
        plan = self._plan(namespace)
        theirs = self._theirs(plan).persist()
        try:
            ours = self._ours(row)
            borders = sorted(key_of(split) for split in plan.splits)
            documents, suspects = _sums(theirs, ours, borders)
            count, keys = (0, ()) if not suspects else _differences(theirs, ours, borders, suspects)
        finally:
            theirs.unpersist()
        table = row.table if row is not None else CURRENT
        return TableReport(namespace, table, documents, count, keys)

    def _plan(self, namespace: str) -> CollectionPlan:
        for found in find_collections(self._deployment, lambda each: each == namespace):
            return plan_collection(self._deployment, found)
        return CollectionPlan(namespace, "", ())

    def _theirs(self, plan: CollectionPlan) -> DataFrame:
        ranges = plan.ranges
        numbers = self._spark.range(0, len(ranges), 1, numPartitions=len(ranges))
        hashing = hash_ranges(self._uri, plan.namespace, ranges, self._cut, self._rules)
        return numbers.mapInArrow(hashing, HASH_SCHEMA)

    def _ours(self, row: control.Row | None) -> DataFrame:
        if row is None or row.version is None:
            return self._spark.createDataFrame([], HASH_SCHEMA)
        rows = self._lake.read(row.table, row.version).where("not deleted")
        return rows.select(
            "key", F.sha2("bson", 256).alias("hash"), F.col("document_key").alias("shown")
        )


def hash_ranges(
    uri: str,
    namespace: str,
    ranges: Sequence[tuple[bytes | None, bytes | None]],
    cut: int,
    rules: FieldRules,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]:
    """The function that Spark maps over the numbers of the ranges."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with MongoClient[dict[str, Any]](uri, appname="tailrace") as client:
            reader = reading.RangeReader(client)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from _hashed(reader.at(namespace, cut, *ranges[number]), rules)

    return run


def _hashed(documents: Iterator[bytes], rules: FieldRules) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[Any, ...]] = []
    try:
        for raw in documents:
            key = reading.key_of(raw)
            digest = hashlib.sha256(rules.document(raw)).hexdigest()
            rows.append((key_of(key), digest, canonical(key)))
            if len(rows) >= HASHES_AT_ONCE:
                yield record_batch(rows, _HASHES)
                rows = []
    except PyMongoError as error:
        if isinstance(error, OperationFailure):
            raise converted(error, "the role read on its database") from error
        raise converted(error, "") from error
    yield record_batch(rows, _HASHES)


def _sums(theirs: DataFrame, ours: DataFrame, borders: Sequence[str]) -> tuple[int, list[int]]:
    """How many documents the source has, and the key ranges whose sums differ."""
    sums = [
        {
            each["range"]: (each["rows"], each["sum"])
            for each in side.groupBy(_range_of(borders).alias("range"))
            .agg(
                F.count("*").alias("rows"),
                F.bit_xor(F.xxhash64("key", "hash")).alias("sum"),
            )
            .collect()
        }
        for side in (theirs, ours)
    ]
    differing = [at for at in {*sums[0], *sums[1]} if sums[0].get(at) != sums[1].get(at)]
    return sum(rows for rows, _ in sums[0].values()), sorted(differing)


def _range_of(borders: Sequence[str]) -> Any:
    """The number of the key range that a key is in."""
    if not borders:
        return F.lit(0)
    known = F.array(*(F.lit(border) for border in borders))
    return F.size(F.filter(known, lambda border: border <= F.col("key")))


def _differences(
    theirs: DataFrame, ours: DataFrame, borders: Sequence[str], suspects: Sequence[int]
) -> tuple[int, tuple[tuple[str, str], ...]]:
    some = _range_of(borders).isin(*suspects)
    left = theirs.where(some).alias("l")
    right = ours.where(some).alias("r")
    how = (
        F.when(F.col("l.key").isNull(), SUPERFLUOUS)
        .when(F.col("r.key").isNull(), MISSING)
        .otherwise(DIFFERENT)
    )
    found = (
        left.join(right, F.col("l.key") == F.col("r.key"), "full")
        .where(~F.col("l.hash").eqNullSafe(F.col("r.hash")))
        .select(
            F.coalesce("l.key", "r.key").alias("key"),
            F.coalesce("l.shown", "r.shown").alias("shown"),
            how.alias("how"),
        )
    ).persist()
    first = found.orderBy("key").limit(KEYS_LISTED).collect()
    return found.count(), tuple((each["shown"], each["how"]) for each in first)
