"""Field rules over the rows of the source, before anything of them is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tailrace.spark.fields import FieldRules


def hidden(rows: DataFrame, rules: FieldRules) -> DataFrame:
    """The rows without what the rules hide; the rows themselves without rules."""
    return rows.mapInArrow(hide_in_batches(rules), rows.schema) if rules else rows


def hide_in_batches(rules: FieldRules) -> Callable[[Iterable[pa.RecordBatch]], Iterator[Any]]:
    """The function that Spark maps over the rows."""
    hiding = {
        "full_document": rules.document,
        "before": rules.document,
        "update_description": rules.description,
        "raw_diff": rules.delta,
    }

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(
                [
                    _mapped(column, hiding[name]) if name in hiding else column
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                ],
                schema=batch.schema,
            )

    return run


def _mapped(column: pa.Array, hide: Callable[[bytes], bytes]) -> pa.Array:
    values = (None if each is None else hide(each) for each in column.to_pylist())
    return pa.array(values, type=column.type)
