"""A query over the source as Spark runs one, without Spark: offsets, batches, rows.

The same planner and the same readers that Spark calls, in this process. Batches are
kept with their ends, so that a test can run any of them again, and compare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tailrace.spark.source.cuts import Limit
from tailrace.spark.source.offsets import Offset, batch
from tailrace.spark.source.options import parse_source_options
from tailrace.spark.source.planning import Planner
from tailrace.spark.source.reading import read_slice

Row = dict[str, Any]
Written = dict[str, Any]


@dataclass
class Query:
    """One query, from its options; each ``step`` is a micro-batch."""

    options: dict[str, str]
    batches: list[tuple[Written, Written, list[Row]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parsed = parse_source_options({"documents": "bson", **self.options})
        self.planner = Planner(self.parsed)
        self.at: Written = self.planner.begin().document

    def step(self) -> list[Row] | None:
        """The rows of the next batch; None when there is nothing new."""
        end = self.next_end()
        if end == self.at:
            return None
        rows = self.run(self.at, end)
        self.batches.append((self.at, end, rows))
        self.at = end
        return rows

    def next_end(self) -> Written:
        """The end of the next batch, as ``latestOffset`` gives it."""
        limit = Limit(self.parsed.max_events, self.parsed.max_bytes)
        return self.planner.end(Offset.parse(self.at), limit).document

    def run(self, start: Written, end: Written) -> list[Row]:
        """The rows of a batch, again."""
        tasks = self.planner.tasks(*batch(start, end))
        return [
            row
            for task in tasks
            for rows in read_slice(task, self.parsed)
            for row in rows.to_pylist()
        ]

    def run_to(self, time: int, steps: int = 10_000) -> list[Row]:
        """The rows of batches until the cut has reached a time."""
        found: list[Row] = []
        for _ in range(steps):
            if Offset.parse(self.at).cut >= time:
                return found
            found += self.step() or []
        raise AssertionError(f"the cut did not reach {time} in {steps} batches")
