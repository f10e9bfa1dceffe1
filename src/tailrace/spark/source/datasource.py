"""The Python data source ``tailrace``: what Spark calls, and when.

``spark.dataSource.register(TailraceSource)``, then ``spark.readStream.format("tailrace")``
or ``spark.read.format("tailrace")``. The driver calls ``initialOffset`` when a query has
no checkpoint, ``latestOffset`` at each trigger and ``partitions`` for each batch, also
for one that is run again after a crash; executors call ``read``. Nothing is kept between
these calls but the connection, and ``commit`` and ``stop`` have nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tailrace.errors import OptionError
from tailrace.spark.source.archives import ArchiveTask, archive_tasks, read_archive
from tailrace.spark.source.cuts import Limit
from tailrace.spark.source.offsets import Offset, batch
from tailrace.spark.source.options import SourceOptions, parse_source_options
from tailrace.spark.source.planning import Planner
from tailrace.spark.source.reading import SliceTask, read_slice
from tailrace.spark.source.schema import spark_schema

Written = dict[str, Any]
"""An offset as Spark hands it over: decoded JSON."""


class TailraceSource(DataSource):
    """A deployment's changes as a streaming and as a batch source."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "tailrace"

    def schema(self) -> str:
        """The columns; asked once, when a query is made."""
        return spark_schema(self._parsed.documents)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads a range, or a directory of archives, once."""
        return RangeReader(self._parsed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """What reads micro-batches."""
        return StreamReader(self._parsed)

    @property
    def _parsed(self) -> SourceOptions:
        return parse_source_options(self.options)


class Slice(InputPartition):
    """A task as Spark carries it to an executor."""

    def __init__(self, task: SliceTask | ArchiveTask) -> None:
        super().__init__(None)
        self.task = task


class _Reader:
    """What both readers share: the planner, made when the driver first needs it."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options}

    @cached_property
    def _planner(self) -> Planner:
        return Planner(self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; called on an executor, perhaps more than once."""
        if not isinstance(partition, Slice):
            return iter(())  # Spark's own, where there is no partition
        if isinstance(partition.task, ArchiveTask):
            return read_archive(partition.task, self._options)
        return read_slice(partition.task, self._options)


class RangeReader(_Reader, DataSourceReader):
    """Reads a range of a live log, or a directory of archives."""

    def partitions(self) -> Sequence[InputPartition]:
        """The slices of the range, or the archives."""
        if self._options.archives:
            return [Slice(task) for task in archive_tasks(self._options)]
        start, end = self._planner.range()
        return [Slice(task) for task in self._planner.tasks(start, end)]


class StreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batches at consistent cuts."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        if options.archives:
            raise OptionError("archives are read in batches: spark.read", option="archives")

    def initialOffset(self) -> Written:  # noqa: N802
        """Where a query without a checkpoint begins; asked again until a batch was planned."""
        return self._planner.begin().document

    def latestOffset(self, start: Written, limit: ReadLimit) -> Written:  # noqa: N802
        """The end of the next batch; ``start`` itself says that there is nothing new."""
        return self._planner.end(Offset.parse(start), self._limit(limit)).document

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch holds, as the options say."""
        return ReadMaxRows(self._options.max_events)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends at what is there now; called once, before the first batch."""
        self._planner.stop_at_now()

    def reportLatestOffset(self) -> Written:  # noqa: N802
        """What the query's progress shows as the source's own end, beside its window."""
        return self._planner.backlog()

    def partitions(self, start: Written, end: Written) -> Sequence[InputPartition]:
        """The slices of a batch; the same ends always give the same rows."""
        return [Slice(task) for task in self._planner.tasks(*batch(start, end))]

    def commit(self, end: Written) -> None:
        """Nothing is kept, so nothing is given up."""

    def stop(self) -> None:
        """The client serves the process, not the query."""

    def _limit(self, limit: ReadLimit) -> Limit:
        size = self._options.max_bytes
        if isinstance(limit, ReadAllAvailable):
            return Limit()
        if isinstance(limit, ReadMaxRows):
            return Limit(limit.max_rows, size)
        if isinstance(limit, ReadMaxBytes):
            return Limit(self._options.max_events, limit.max_bytes)
        return Limit(self._options.max_events, size)
