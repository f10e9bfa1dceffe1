"""One micro-batch seen from the driver: who is written to, and what becomes of the rows.

The rows stay on the executors. What the driver looks at is the census: the namespaces
that are written to between the DDL of the batch, and the DDL itself, which is rare.
All tables of a batch go through one shuffle, by table and key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import itemgetter
from typing import Any

import bson
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from tailrace.spark.apply.control import CURRENT
from tailrace.spark.apply.keys import key_in_token
from tailrace.spark.apply.mapping import Ddl, Routes
from tailrace.spark.apply.rows import INPUT_COLUMNS, OUTPUT_SCHEMA, FoldRules, fold_batches
from tailrace.spark.lake import Lake

WRITES = ("insert", "update", "replace", "delete")
DDL = ("drop", "rename", "dropDatabase")
Included = Callable[[str], bool]


def long_time(seconds: str, increment: str) -> Column:
    """A cluster time as one integer, from its two columns."""
    return F.shiftleft(F.unix_seconds(F.col(seconds)), 32).bitwiseOR(F.col(increment))


def effective() -> Column:
    """The effective time of a row."""
    return long_time("effective_time", "effective_increment")


def namespace_of_row() -> Column:
    """The namespace of a row."""
    return F.concat_ws(".", "db", "coll")


@dataclass(frozen=True, slots=True)
class Census:
    """The namespaces that each stretch writes to, in their order, and the DDL between."""

    rows: int
    stretches: Sequence[Sequence[str]]
    ddl: Sequence[Ddl]
    tokens: Sequence[str]
    """Of the DDL."""


def take_census(rows: DataFrame, included: Included) -> Census:
    """Look at a batch: in most of them there is one stretch, and no DDL."""
    event = F.struct("token", "operation", "db", "coll", "other", effective().alias("effective"))
    is_write = F.col("operation").isin(*WRITES)
    groups = (
        rows.groupBy(F.when(is_write, namespace_of_row()).alias("namespace"))
        .agg(
            F.count("*").alias("rows"),
            F.min("token").alias("first"),
            F.collect_list(F.when(F.col("operation").isin(*DDL), event)).alias("ddl"),
        )
        .collect()
    )
    count = sum(group["rows"] for group in groups)
    ddl = sorted((each for group in groups for each in group["ddl"]), key=lambda row: row["token"])
    written = [(0, group["namespace"], group["first"]) for group in groups if group["namespace"]]
    tokens = [each["token"] for each in ddl]
    if ddl:
        written = _written_between(rows.where(is_write), tokens)
    stretches: list[list[str]] = [[] for _ in range(len(ddl) + 1)]
    for stretch, namespace, _ in sorted(written, key=itemgetter(2)):
        stretches[stretch].append(namespace)
    return Census(count, stretches, [_ddl(each, included) for each in ddl], tokens)


def _written_between(writes: DataFrame, tokens: Sequence[str]) -> list[tuple[int, str, str]]:
    groups = (
        writes.groupBy(_stretch(tokens).alias("stretch"), namespace_of_row().alias("namespace"))
        .agg(F.min("token").alias("first"))
        .collect()
    )
    return [(group["stretch"], group["namespace"], group["first"]) for group in groups]


def _stretch(tokens: Sequence[str]) -> Column:
    """The number of DDL events before a row; one flat expression, however many there are."""
    if not tokens:
        return F.lit(0)
    known = F.array(*map(F.lit, tokens))
    return F.size(F.filter(known, lambda token: token < F.col("token")))


def _ddl(row: Any, included: Included) -> Ddl:
    target, known = None, True
    if row["operation"] == "rename":
        to = bson.decode(row["other"])["to"]
        target = f"{to['db']}.{to['coll']}"
        target = target if included(target) else None
        known = included(f"{row['db']}.{row['coll']}")
    return Ddl(row["operation"], row["db"], row["coll"], row["effective"], target, known)


@dataclass(frozen=True, slots=True)
class Target:
    """A table that a batch may change."""

    table: str
    behind: int
    """The cut that it shows already."""
    exists: bool
    complete_from: int
    emptied: int | None = None
    """The number of the last DDL of the batch that empties it."""

    @property
    def path(self) -> str:
        """Where it lies below the target."""
        return CURRENT + self.table


def changed_rows(
    rows: DataFrame,
    census: Census,
    routes: Routes,
    targets: Sequence[Target],
    lake: Lake,
    soft: bool,
) -> DataFrame:
    """What becomes of the rows: the output of the fold, by the tables' numbers."""
    writes = _writes(rows, census, routes, targets)
    stored = _stored(writes, targets, lake, soft)
    everything = writes if stored is None else writes.unionByName(stored)
    rules = FoldRules(tuple(target.complete_from for target in targets), soft)
    return (
        everything.repartition("table", "key")
        .sortWithinPartitions("table", "key", F.col("operation").isNotNull(), "token")
        .mapInArrow(fold_batches(rules), OUTPUT_SCHEMA)
    )


def _writes(
    rows: DataFrame, census: Census, routes: Routes, targets: Sequence[Target]
) -> DataFrame:
    """The writes with their tables' numbers; what a table shows already is left out."""
    number_of = {target.table: number for number, target in enumerate(targets)}
    places = [
        (stretch, namespace, number_of[table], targets[number_of[table]].behind)
        for (stretch, namespace), table in routes.of.items()
        if table in number_of and not _emptied_after(targets[number_of[table]], stretch)
    ]
    known = F.broadcast(rows.sparkSession.createDataFrame(_arrow_table(places)))
    return (
        rows.where(F.col("operation").isin(*WRITES))
        .select(
            _stretch(census.tokens).alias("stretch"),
            namespace_of_row().alias("namespace"),
            key_in_token(F.col("token")).alias("key"),
            "operation",
            "token",
            long_time("cluster_time", "cluster_increment").alias("cluster_time"),
            effective().alias("effective"),
            "document_key",
            "full_document",
            "raw_diff",
            F.lit(False).alias("deleted"),
        )
        .join(known, ["stretch", "namespace"])
        .where("effective > behind")
        .select(*INPUT_COLUMNS)
    )


def _arrow_table(places: Sequence[tuple[int, str, int, int]]) -> pa.Table:
    kinds = (pa.int32(), pa.string(), pa.int32(), pa.int64())
    schema = pa.schema(list(zip(("stretch", "namespace", "table", "behind"), kinds, strict=True)))
    return pa.Table.from_pylist(
        [dict(zip(schema.names, each, strict=True)) for each in places], schema
    )


def _emptied_after(target: Target, stretch: int) -> bool:
    return target.emptied is not None and stretch <= target.emptied


def _stored(
    writes: DataFrame, targets: Sequence[Target], lake: Lake, soft: bool
) -> DataFrame | None:
    """The stored rows of the keys that are written to, of tables that keep their rows.

    A document that is only inserted has no row, unless a load read it or a deleted one
    was kept.
    """
    tables = [
        lake.read(target.path).select(
            F.lit(number).alias("table"),
            "key",
            F.lit(None).cast("string").alias("operation"),
            "token",
            long_time("cluster_time", "cluster_increment").alias("cluster_time"),
            F.lit(0).cast("long").alias("effective"),
            F.lit(None).cast("binary").alias("document_key"),
            F.col("bson").alias("full_document"),
            F.lit(None).cast("binary").alias("raw_diff"),
            "deleted",
        )
        for number, target in enumerate(targets)
        if target.exists and target.emptied is None
    ]
    if not tables:
        return None
    fresh = [
        number
        for number, target in enumerate(targets)
        if target.behind >= target.complete_from and not soft
    ]
    asked = writes.where(~((F.col("operation") == "insert") & F.col("table").isin(fresh)))
    everything = reduce(DataFrame.unionByName, tables)
    return everything.join(F.broadcast(asked.select("table", "key")), ["table", "key"], "leftsemi")
