"""What tailrace needs of a table format: commits that know which cut they show.

A table is named by its path below the target. Each write is one commit, and carries a
``Commit``: a writer's name and a number that grows. A format must refuse a commit whose
number is not above the last one of that name, and tell that number back, since this is
all that makes a repeated batch harmless. Reads see whole commits only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Commit:
    """Who writes, and the number of the write: for changes and tables a cut."""

    writer: str
    number: int


class Lake(Protocol):
    """The tables of one target; for one writer at a time, from any of its threads."""

    def exists(self, table: str) -> bool:
        """Whether the table has a first commit."""

    def last_number(self, table: str, writer: str) -> int | None:
        """The number of this writer's last commit; None before its first."""

    def version(self, table: str) -> int:
        """The number of the table's newest version, as its readers name it."""

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """The rows of the newest version, or of a certain one."""

    def append(self, table: str, rows: DataFrame, commit: Commit) -> None:
        """Add rows; the first write makes the table."""

    def replace(self, table: str, rows: DataFrame, commit: Commit) -> None:
        """Let these rows be all there are."""

    def merge(self, table: str, changes: DataFrame, commit: Commit) -> None:
        """Put rows in by ``key``: over the row of that key, or new; ``gone`` ones go away.

        ``changes`` has the table's columns and ``gone``, and each key once.
        """

    def compact(self, table: str) -> None:
        """Join small files; the rows stay as they are."""

    def vacuum(self, table: str, keep_hours: float) -> None:
        """Delete what no version of the last hours needs."""
