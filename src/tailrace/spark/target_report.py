"""What is to be said of a target in a few lines: its source, its tables, its cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyspark.sql import SparkSession

from tailrace.spark.apply import control
from tailrace.spark.apply.control import CHANGES
from tailrace.spark.lake import DeltaLake
from tailrace.spark.source.offsets import format_time
from tailrace.spark.target import root_of

Said = tuple[str, bool | None, str]
"""Name, whether it is good, and what there is to say."""


def describe(spark: SparkSession, to: str) -> Iterator[Said]:
    """The findings of a target; a new one is fine."""
    root = root_of(to)
    rows = control.last_rows(DeltaLake(spark, root))
    if CHANGES not in rows:
        yield "target", True, f"{root} is new"
        return
    changes = rows[CHANGES]
    made = changes.detail
    yield "target", True, f"{root} was made from {made['set']!r} ({made['source']})"
    loading = "complete_from" not in made
    state = "its load is not over" if loading else f"{changes.state} at {format_time(changes.cut)}"
    yield "cut", None if loading else True, state
    states = Counter(row.state for path, row in rows.items() if path != CHANGES)
    if states:
        said = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        bad = states.get(control.INCOMPLETE, 0) > 0
        yield "tables", not bad, said
