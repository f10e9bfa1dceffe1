"""What happens to each micro-batch: ``changes``, then every table, then ``control``.

One commit per table and cut, numbered by the cut. What a table's stored cut covers is
dropped first, so that a batch may come again, cut differently or not, as often as it
likes: Spark's numbers for batches are not looked at, only the offsets behind them. The
driver may die between any two commits; the tables meet again with the next batch.

The batch's end is read from the query's own offset log, which Spark writes before it
runs a batch. A batch that begins behind what the tables show would leave a gap: it is
refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tailrace.errors import CheckpointError, DivergedTable, TailraceError
from tailrace.spark.apply import control
from tailrace.spark.apply.batch import (
    Census,
    Included,
    Target,
    changed_rows,
    effective,
    take_census,
)
from tailrace.spark.apply.control import CHANGES, CURRENT
from tailrace.spark.apply.hadoop import read_text
from tailrace.spark.apply.hiding import hidden
from tailrace.spark.apply.mapping import Routes, route
from tailrace.spark.apply.rows import CURRENT_COLUMNS
from tailrace.spark.failures import SPARK_ERRORS, converted
from tailrace.spark.fields import NOTHING_HIDDEN, FieldRules
from tailrace.spark.lake import Commit, Lake
from tailrace.spark.maintain import MaintenanceClock, maintain
from tailrace.spark.source.offsets import Offset, format_time

WRITER = "tailrace"
"""Whose commits they are, in every table's log."""
COMMITS_AT_ONCE = 4
ROWS_IN_A_FILE = 200_000
"""A batch's rows of a table become one file up to here."""
NEVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What a target was made with."""

    included: Included = field(default=lambda namespace: True)
    soft_deletes: bool = False
    with_tables: bool = True
    """Whether there is ``current`` at all."""
    fields: FieldRules = NOTHING_HIDDEN
    maintenance: MaintenanceClock | None = None
    applied: Callable[[int, int, float], None] | None = None
    """Told of each batch: its rows, its cut, how many seconds it took."""


class Applier:
    """Applies the batches of one query to one planned target; the only writer there."""

    def __init__(
        self, spark: SparkSession, lake: Lake, settings: Settings, checkpoint: str
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._settings = settings
        self._checkpoint = checkpoint
        self._rows = control.last_rows(lake)
        self._cuts: dict[str, int] = {}
        self.idle = threading.Event()
        """Whether no batch is being applied."""
        self.idle.set()
        self.error: TailraceError | None = None
        """What the last batch failed with."""

    @property
    def cut(self) -> int:
        """The cut of the last batch that went through."""
        return self._rows[CHANGES].cut

    @property
    def complete_from(self) -> int:
        """The time behind the last read of the load."""
        return int(self._rows[CHANGES].detail["complete_from"])

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """One batch, as Spark hands it to ``foreachBatch``."""
        self.idle.clear()
        try:
            self._take(rows, batch_id)
        except (TailraceError, *SPARK_ERRORS) as error:
            self.error = converted(error)
            raise
        finally:
            self.idle.set()

    def _take(self, rows: DataFrame, batch_id: int) -> None:
        began = time.monotonic()
        start, end = self._bounds(batch_id)
        if start > self.cut:
            raise CheckpointError(
                f"the checkpoint goes on behind {format_time(start)}, but the tables end at "
                f"{format_time(self.cut)}, so that what lies between would be missing: remove "
                "the checkpoint, and the query goes on where the tables end",
            )
        if end <= self.cut:
            return
        # What control has said is in every table already.
        rows = hidden(rows.where(effective() > self.cut), self._settings.fields).persist()
        try:
            count = self._apply(rows, Commit(WRITER, end))
        finally:
            rows.unpersist()
        if self._settings.applied is not None:
            self._settings.applied(count, end, time.monotonic() - began)
        if self._settings.maintenance is not None and self._settings.maintenance.due():
            self._rows.update(maintain(self._spark, self._lake, self._rows))

    def _bounds(self, batch_id: int) -> tuple[int, int]:
        end = self._offset(batch_id)
        if end is None:
            raise CheckpointError(f"the offset log has no batch {batch_id}", batch=batch_id)
        if end.began is not None:
            return end.began.cut, end.cut
        start = self._offset(batch_id - 1)
        return (start.cut if start else 0), end.cut

    def _offset(self, batch_id: int) -> Offset | None:
        text = read_text(self._spark, f"{self._checkpoint}/offsets/{batch_id}")
        return Offset.parse(text.splitlines()[-1]) if text else None

    def _apply(self, rows: DataFrame, commit: Commit) -> int:
        """Commit all that is in a batch; gives the number of its rows."""
        census = take_census(rows, self._settings.included)
        self._append_changes(rows, census.rows, commit)
        said: list[control.Row] = []
        if self._settings.with_tables:
            said = self._apply_to_tables(rows, census, commit)
        self._say(said, commit)
        return census.rows

    def _append_changes(self, rows: DataFrame, count: int, commit: Commit) -> None:
        known = self._stored_cut(CHANGES)
        if not count or known >= commit.number:
            return
        if known > self.cut:  # the driver died before control could say so
            rows = rows.where(effective() > known)
            if not (count := rows.count()):
                return
        self._lake.append(CHANGES, _in_few_files(rows, count), commit)
        self._cuts[CHANGES] = commit.number

    def _apply_to_tables(
        self, rows: DataFrame, census: Census, commit: Commit
    ) -> list[control.Row]:
        known = {
            name.removeprefix(CURRENT): row
            for name, row in self._rows.items()
            if name.startswith(CURRENT)
        }
        before = {row.namespace: name for name, row in known.items() if row.namespace}
        routes = route(before, known, census.stretches, census.ddl, self.cut)
        touched = sorted({*routes.of.values(), *routes.emptied, *routes.unread})
        targets = [self._target(name, routes) for name in touched]
        behind = [target for target in targets if target.behind < commit.number]
        if behind:
            self._commit(
                changed_rows(rows, census, routes, behind, self._lake, self._soft), behind, commit
            )
        return self._what_is_new(known, routes, touched, commit.number)

    @property
    def _soft(self) -> bool:
        return self._settings.soft_deletes

    def _stored_cut(self, table: str) -> int:
        if table not in self._cuts:
            self._cuts[table] = self._lake.last_number(table, WRITER) or 0
        return self._cuts[table]

    def _target(self, name: str, routes: Routes) -> Target:
        path = CURRENT + name
        behind = self._stored_cut(path)
        emptied = routes.last_emptied(name, behind)
        row = self._rows.get(path)
        was_unread = row is not None and row.state == control.INCOMPLETE and emptied is None
        unread = name in routes.unread or was_unread
        complete_from = NEVER if unread else self.complete_from
        return Target(name, behind, self._lake.exists(path), complete_from, emptied)

    def _commit(self, changed: DataFrame, targets: list[Target], commit: Commit) -> None:
        changed = changed.persist()
        try:
            counts = _counted(changed)
            with ThreadPoolExecutor(COMMITS_AT_ONCE) as pool:
                done = [
                    pool.submit(self._commit_table, changed, number, target, counts, commit)
                    for number, target in enumerate(targets)
                ]
            for each in done:
                each.result()
        finally:
            changed.unpersist()

    def _commit_table(
        self, changed: DataFrame, number: int, target: Target, counts: Counts, commit: Commit
    ) -> None:
        rows = changed.where(F.col("table") == number)
        some = counts.get((number, False), 0) + counts.get((number, True), 0)
        new = _in_few_files(rows.where("not gone").select(*CURRENT_COLUMNS), some)
        # A table that lacks documents must be there, so that control can say so.
        is_new = not target.exists and target.complete_from == NEVER
        if target.exists and target.emptied is not None:
            self._lake.replace(target.path, self._with_emptied(target, new), commit)
        elif counts.get((number, True)):
            self._lake.merge(target.path, rows.select(*CURRENT_COLUMNS, "gone"), commit)
        elif some or is_new:
            self._lake.append(target.path, new, commit)
        else:
            return
        self._cuts[target.path] = commit.number

    def _with_emptied(self, target: Target, new: DataFrame) -> DataFrame:
        """What is in a table behind a drop: the new rows, and the old ones where they are kept."""
        if not self._soft:
            return new
        old = self._lake.read(target.path).join(new.select("key"), "key", "leftanti")
        return new.unionByName(old.withColumn("deleted", F.lit(True)))

    def _what_is_new(
        self, known: Mapping[str, control.Row], routes: Routes, touched: list[str], cut: int
    ) -> list[control.Row]:
        """The rows of ``control`` for tables that this batch changed, or showed to be complete."""
        namespace_of = {table: namespace for namespace, table in routes.tables.items()}
        crossed = self.cut < self.complete_from <= cut
        rows = []
        for name in sorted({*known, *touched}):
            row = known.get(name)
            path, namespace = CURRENT + name, namespace_of.get(name)
            if row is not None and row.state == control.LEFT_OUT:
                continue
            moved = row is not None and row.namespace != namespace
            if not (moved or name in touched or crossed) or not self._lake.exists(path):
                continue
            incomplete = name in routes.unread or (
                row is not None and row.state == control.INCOMPLETE and name not in routes.emptied
            )
            state = control.INCOMPLETE if incomplete else self._state(cut)
            rows.append(control.Row(path, self._lake.version(path), cut, state, namespace))
        return rows

    def _state(self, cut: int) -> str:
        if cut < self.complete_from:
            return control.LOADING
        ahead = any(stored > cut for stored in self._cuts.values())
        return control.CATCHING_UP if ahead else control.CONSISTENT

    def _say(self, rows: list[control.Row], commit: Commit) -> None:
        version = self._lake.version(CHANGES) if self._stored_cut(CHANGES) else None
        state = self._state(commit.number)
        changes = control.Row(
            CHANGES, version, commit.number, state, detail=self._rows[CHANGES].detail
        )
        control.write_rows(self._spark, self._lake, [*rows, changes], commit)
        self._rows.update({row.table: row for row in (*rows, changes)})


Counts = Mapping[tuple[int, bool], int]
"""(table's number, whether the row was stored before) to rows."""


def _counted(changed: DataFrame) -> Counts:
    """How many rows of each table change; an error, if one cannot."""
    counted = changed.groupBy("table", "stored").agg(
        F.count("*").alias("rows"), F.max("problem").alias("problem")
    )
    counts = {}
    for each in counted.collect():
        if each["problem"] is not None:
            raise DivergedTable(
                f"an update cannot be applied: {each['problem']}; the table is not what the log "
                "goes on from: load it again, into another target",
            )
        counts[each["table"], each["stored"]] = each["rows"]
    return counts


def _in_few_files(rows: DataFrame, count: int) -> DataFrame:
    return rows.coalesce(1 + count // ROWS_IN_A_FILE)
