"""``control``: which version of which table shows which cut.

Append only, one commit after all tables of a batch, so that what it says is there. A
table's last row holds until its next one; the row of ``changes`` comes with every cut
and also says what the target was made of. At any cut that ``changes`` has as
``consistent``, the tables are those of their last rows up to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tailrace.spark.lake import Commit, Lake

CHANGES = "changes"
CONTROL = "control"
CURRENT = "current/"
LOADING = "loading"
"""The initial load is not over, or the cut is not behind its last read."""
CONSISTENT = "consistent"
"""A reader may rely on it."""
CATCHING_UP = "catching up"
"""After a repair of the checkpoint: another table is ahead of this cut."""
INCOMPLETE = "incomplete"
"""A rename brought documents in that were never read; the table has the later ones."""
LEFT_OUT = "left out"
"""Not a collection that can be followed: ``detail`` says why."""
SCHEMA = (
    "written TIMESTAMP, cut BIGINT, cluster_time TIMESTAMP, cluster_increment BIGINT, "
    "namespace STRING, table STRING, version BIGINT, state STRING, detail STRING"
)


@dataclass(frozen=True, slots=True)
class Row:
    """What is said of one table at one cut."""

    table: str
    version: int | None
    cut: int
    state: str
    namespace: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


def last_rows(lake: Lake) -> dict[str, Row]:
    """The last row of each table; empty for a new target."""
    if not lake.exists(CONTROL):
        return {}
    values = F.struct("written", "version", "cut", "state", "namespace", "detail")
    newest = (
        lake.read(CONTROL)
        .groupBy("table")
        .agg(F.max_by(values, F.struct("cut", "written")).alias("last"))
    )
    return {
        each["table"]: Row(
            each["table"],
            each["last"]["version"],
            each["last"]["cut"],
            each["last"]["state"],
            each["last"]["namespace"],
            json.loads(each["last"]["detail"] or "{}"),
        )
        for each in newest.collect()
    }


def write_rows(spark: SparkSession, lake: Lake, rows: Iterable[Row], commit: Commit) -> None:
    """Append rows in one commit."""
    now = datetime.now(timezone.utc)
    values = [
        (
            now,
            row.cut,
            datetime.fromtimestamp(row.cut >> 32, timezone.utc),
            row.cut & 0xFFFF_FFFF,
            row.namespace,
            row.table,
            row.version,
            row.state,
            json.dumps(row.detail) if row.detail else None,
        )
        for row in rows
    ]
    lake.append(CONTROL, spark.createDataFrame(values, SCHEMA).coalesce(1), commit)
