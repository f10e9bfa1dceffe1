"""Upkeep of a target: small files joined, and what no reader may ask for any more deleted.

A compaction makes a new version of a table with the same rows, so ``control`` gets a row
that names it; the versions that it named before stay readable for as long as ``keep``
says. Nothing else writes meanwhile: a job does it between two batches, the command while
no job runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from tailrace.errors import OperatorError
from tailrace.spark.apply import control
from tailrace.spark.failures import SPARK_ERRORS, converted
from tailrace.spark.lake import Commit, DeltaLake, Lake
from tailrace.spark.target import held, root_of

MAINTAINER = "tailrace/maintain"
KEEP_HOURS = 7 * 24.0
MARGIN_HOURS = 1.0
"""A version is replaced in its table a moment before ``control`` names the next."""


class MaintenanceClock:
    """Says when upkeep is due."""

    def __init__(self, every_s: float | None, clock: Callable[[], float]) -> None:
        self._every_s = every_s
        self._clock = clock
        self._since = clock()

    def due(self) -> bool:
        """Whether it is time; asking is taking."""
        if self._every_s is None or self._clock() - self._since < self._every_s:
            return False
        self._since = self._clock()
        return True


def maintain(
    spark: SparkSession,
    lake: Lake,
    rows: Mapping[str, control.Row],
    keep_hours: float = KEEP_HOURS,
) -> dict[str, control.Row]:
    """Compact and clean every table that ``control`` knows; gives the rows that it added."""
    tables = [path for path, row in rows.items() if row.version is not None and lake.exists(path)]
    for path in tables:
        lake.compact(path)
    named = {
        path: replace(rows[path], version=version)
        for path in tables
        if (version := lake.version(path)) != rows[path].version
    }
    if named:
        number = (lake.last_number(control.CONTROL, MAINTAINER) or 0) + 1
        control.write_rows(spark, lake, named.values(), Commit(MAINTAINER, number))
    lake.compact(control.CONTROL)
    for path in (*tables, control.CONTROL):
        lake.vacuum(path, keep_hours + MARGIN_HOURS)
    return named


def maintain_target(spark: SparkSession, to: str, keep_hours: float) -> dict[str, control.Row]:
    """The same for a target that no job has."""
    root = root_of(to)
    lake = DeltaLake(spark, root)
    if not lake.exists(control.CONTROL):
        raise OperatorError(f"there is nothing to maintain at {root}: tailrace sync makes it")
    try:
        with held(spark, root):
            return maintain(spark, lake, control.last_rows(lake), keep_hours)
    except SPARK_ERRORS as error:
        raise converted(error) from error
