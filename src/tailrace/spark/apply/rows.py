"""The columns of ``current`` tables, and the fold of a batch as Spark runs it.

``changed_rows`` runs on executors: it takes stored rows and writes, sorted by table, key
and token (a stored row first), and gives the rows that change. An update that cannot be
applied comes out as a row with ``problem``, so that the driver can say so before it
commits anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from tailrace.raw.extended_json import canonical
from tailrace.spark.apply.fold import Row, UpdateWithoutRow, Write, fold

CURRENT_SCHEMA = (
    "key STRING, document_key STRING, document STRING, bson BINARY, "
    "cluster_time TIMESTAMP, cluster_increment BIGINT, token STRING, deleted BOOLEAN"
)
"""A table's columns; ``bson`` is what ``document`` shows, byte for byte."""
CURRENT_COLUMNS = [column.split()[0] for column in CURRENT_SCHEMA.split(", ")]
INPUT_SCHEMA = (
    "table INT, key STRING, operation STRING, token STRING, cluster_time BIGINT, "
    "effective BIGINT, document_key BINARY, full_document BINARY, raw_diff BINARY, "
    "deleted BOOLEAN"
)
"""What the fold takes: writes, and stored rows, whose operation is null."""
INPUT_COLUMNS = [column.split()[0] for column in INPUT_SCHEMA.split(", ")]
OUTPUT_SCHEMA = f"table INT, {CURRENT_SCHEMA}, gone BOOLEAN, stored BOOLEAN, problem STRING"
"""What it gives: rows as they are to be, whether one is to go, whether there was one."""
CURRENT_ARROW = pa.schema(
    [
        ("key", pa.string()),
        ("document_key", pa.string()),
        ("document", pa.string()),
        ("bson", pa.binary()),
        ("cluster_time", pa.timestamp("us", tz="UTC")),
        ("cluster_increment", pa.int64()),
        ("token", pa.string()),
        ("deleted", pa.bool_()),
    ]
)
_OUTPUT = pa.schema(
    [
        ("table", pa.int32()),
        *CURRENT_ARROW,
        ("gone", pa.bool_()),
        ("stored", pa.bool_()),
        ("problem", pa.string()),
    ]
)
BATCH_ROWS = 5_000
"""Rows in one answer: documents are kilobytes, and answers are kept in memory."""
MICROSECONDS = 1_000_000

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FoldRules:
    """What the fold must know besides the rows; it goes to every executor."""

    complete_from: tuple[int, ...]
    """Of each table, the time from which every document has a row."""
    soft: bool = False


def fold_batches(rules: FoldRules) -> Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]:
    """The function that Spark maps over the sorted batches of a partition."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answer: list[Values] = []
        for changed in changed_rows(_values(batches), rules):
            answer.append(changed)
            if len(answer) >= BATCH_ROWS:
                yield record_batch(answer, _OUTPUT)
                answer = []
        yield record_batch(answer, _OUTPUT)

    return run


def changed_rows(values: Iterable[Values], rules: FoldRules) -> Iterator[Values]:
    """The changed row of each key, as values in the order of the output's columns."""
    for (table, key), group in groupby(values, itemgetter(0, 1)):
        first, *rest = group
        stored = _row(first) if first[2] is None else None
        writes = [Write(*each[2:9]) for each in (rest if stored else [first, *rest])]
        complete_from = rules.complete_from[table]
        try:
            row = fold(stored, writes, complete_from=complete_from, soft=rules.soft)
        except UpdateWithoutRow as problem:
            why = f"{problem.reason} (token {problem.token})"
            yield (table, key, *[None] * 7, False, stored is not None, why)
            continue
        if row is not None and row is not stored:
            yield (table, key, *shown(row), False, stored is not None, None)
        elif row is None and stored is not None:
            yield (table, key, *[None] * 7, True, True, None)


def shown(row: Row) -> Values:
    """A row's values from ``document_key`` on."""
    return (
        canonical(row.document_key),
        canonical(row.document),
        row.document,
        (row.cluster_time >> 32) * MICROSECONDS,
        row.cluster_time & 0xFFFF_FFFF,
        row.token,
        row.deleted,
    )


def record_batch(rows: list[Values], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as an Arrow batch."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [
        pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(values: Values) -> Row:
    _, _, _, token, cluster_time, _, _, document, _, deleted = values
    return Row(b"", document, cluster_time, token, deleted)


def _values(batches: Iterable[pa.RecordBatch]) -> Iterator[Values]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
