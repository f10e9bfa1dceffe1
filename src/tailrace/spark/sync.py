"""The job that keeps tables equal to a deployment: load once, then follow.

``Sync`` looks at source and target first, and writes nothing while anything is wrong.
A new target is planned in one commit of ``control``; a load that was killed goes on with
it. The query then starts behind the time that the plan names, or goes on behind the cut
that ``control`` names: Spark's checkpoint may be missing, or older.

What it tells while it runs goes to a ``Listener``, by any thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tailrace.engine.checkup import check_readable, read_identity
from tailrace.engine.source import Source, probe
from tailrace.errors import TailraceError, UnsupportedSource
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.tail import Tail
from tailrace.spark.apply import control
from tailrace.spark.apply.applier import Applier, Settings
from tailrace.spark.apply.control import CHANGES, CURRENT
from tailrace.spark.apply.naming import table_name
from tailrace.spark.failures import SPARK_ERRORS, converted
from tailrace.spark.fields import NOTHING_HIDDEN, FieldRules
from tailrace.spark.lake import Commit, DeltaLake
from tailrace.spark.load.loader import LOADER, Loader, TableLoad
from tailrace.spark.load.plan import CollectionPlan, client_of, find_collections, plan_collection
from tailrace.spark.load.reading import RangeReader
from tailrace.spark.maintain import MaintenanceClock
from tailrace.spark.source.datasource import TailraceSource
from tailrace.spark.source.offsets import format_time
from tailrace.spark.source.options import parse_source_options
from tailrace.spark.target import CHECKPOINT, check_made_with, held, root_of
from tailrace.stage.scope import Selection

FIRST_WITH_SNAPSHOTS = (5, 0)
POLL_S = 0.2
"""How soon a signal is seen."""
TELL_S = 2.0
FINISH_S = 60.0
"""How long a batch may take to finish when the job is told to stop."""
LOGIN = "any role: hello needs no more"
TOO_OLD = (
    "a load needs snapshot reads, which MongoDB has from 5.0 on, and this is {version}: "
    "--no-load follows the changes alone"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOptions:
    """What was asked for; the URI may hold a password and is not shown."""

    uri: str = field(repr=False)
    to: str
    namespaces: Sequence[str] = ()
    exclude_namespaces: Sequence[str] = ()
    once: bool = False
    interval: str = "5 seconds"
    load: bool = True
    soft_deletes: bool = False
    fields: FieldRules = NOTHING_HIDDEN
    maintain_every_s: float | None = None
    source: Mapping[str, str] = field(default_factory=dict)
    """Further options of the source."""


def check_source(options: SyncOptions) -> None:
    """Look at what was asked for, and whether the source can be read, before Spark starts."""
    root_of(options.to)
    parse_source_options(source_options(options))
    client = client_of(options.uri)
    try:
        deployment = Deployment(client)
        _check_version(options, probe(deployment))
        check_readable(deployment)
    finally:
        client.close()


def source_options(options: SyncOptions) -> dict[str, str]:
    """The options that the source is given, but for where it starts."""
    given = {**options.source, "uri": options.uri, "documents": "bson"}
    for name, patterns in (
        ("namespaces", options.namespaces),
        ("excludeNamespaces", options.exclude_namespaces),
    ):
        if patterns:
            given[name] = ",".join(patterns)
    return given


def _check_version(options: SyncOptions, source: Source) -> None:
    if options.load and source.version < FIRST_WITH_SNAPSHOTS:
        raise UnsupportedSource(TOO_OLD.format(version=".".join(map(str, source.version))))


class Listener(Protocol):
    """Who is told; each method by any thread, and soon done."""

    def planned(self, tables: int, left_out: Mapping[str, str]) -> None:
        """The load is planned: so many tables, and namespaces that are left out, with why."""

    def loaded(self, namespace: str, done: int, ranges: int) -> None:
        """So many ranges of a collection are in."""

    def started(self, cut: int) -> None:
        """The query runs; the tables show this cut so far."""

    def applied(self, rows: int, cut: int, seconds: float) -> None:
        """A batch is in."""

    def progress(self, behind_s: int, window_s: int) -> None:
        """How far the tables are behind the log's end, and what is left of the log."""


class Sync:
    """One run of the job."""

    def __init__(self, spark: SparkSession, options: SyncOptions, listener: Listener) -> None:
        self._spark = spark
        self._options = options
        self._listener = listener
        self._root = root_of(options.to)
        self._lake = DeltaLake(spark, self._root)
        self._selection = Selection(options.namespaces, options.exclude_namespaces)
        self._client = client_of(options.uri)
        self._deployment = Deployment(self._client)

    def run(self, stopping: threading.Event) -> None:
        """Load what is not loaded, then follow until told to stop, or once."""
        try:
            source = probe(self._deployment)
            made_with = self._made_with(source)
            _check_version(self._options, source)
            with held(self._spark, self._root):
                self._prepare(made_with, stopping)
                if not stopping.is_set():
                    self._follow(stopping)
        except SPARK_ERRORS as error:
            raise converted(error) from error
        finally:
            self._client.close()

    def _made_with(self, source: Source) -> dict[str, Any]:
        """What ``control`` remembers of this target."""
        config = read_identity(self._deployment)
        settings = config.get("settings", {})
        return {
            "source": str(settings.get("replicaSetId", "")),
            "set": str(config.get("_id", "")),
            "namespaces": sorted(self._options.namespaces),
            "excludeNamespaces": sorted(self._options.exclude_namespaces),
            "tables": self._options.load,
            "softDeletes": self._options.soft_deletes,
            "dropFields": sorted(self._options.fields.drop),
            "hashFields": sorted(self._options.fields.hash),
        }

    def _included(self, namespace: str) -> bool:
        return self._selection.collection(namespace.encode())

    def _prepare(self, made_with: Mapping[str, Any], stopping: threading.Event) -> None:
        """Plan a new target, and load what is not loaded of a planned one."""
        rows = control.last_rows(self._lake)
        if rows:
            check_made_with(rows[CHANGES].detail, made_with)
        else:
            rows = self._plan(made_with)
        if "complete_from" not in rows[CHANGES].detail:
            self._load(rows, stopping)

    def _plan(self, made_with: Mapping[str, Any]) -> dict[str, control.Row]:
        reader = RangeReader(self._client)
        start = self._deployment.ask(reader.now, LOGIN)
        rows: dict[str, control.Row] = {}
        detail = dict(made_with)
        if self._options.load:
            taken: list[str] = []
            for found in find_collections(self._deployment, self._included):
                name = table_name(found.namespace, taken)
                taken.append(name)
                kept: Mapping[str, Any] = {"reason": found.left_out}
                if not found.left_out:
                    kept = plan_collection(self._deployment, found).document
                state = control.LEFT_OUT if found.left_out else control.LOADING
                path = CURRENT + name
                rows[path] = control.Row(path, None, start, state, found.namespace, kept)
        else:
            detail["complete_from"] = 0
        state = control.LOADING if self._options.load else control.CONSISTENT
        rows[CHANGES] = control.Row(CHANGES, None, start, state, None, detail)
        self._say(rows)
        return rows

    def _say(self, rows: Mapping[str, control.Row]) -> None:
        """One commit of ``control`` outside of any batch."""
        number = 0
        if self._lake.exists(control.CONTROL):
            number = self._lake.last_number(control.CONTROL, LOADER) or 0
        control.write_rows(self._spark, self._lake, rows.values(), Commit(LOADER, number + 1))

    def _load(self, rows: Mapping[str, control.Row], stopping: threading.Event) -> None:
        tables, left_out = [], {}
        for path, row in rows.items():
            if row.state == control.LEFT_OUT:
                left_out[str(row.namespace)] = str(row.detail.get("reason", ""))
            elif path != CHANGES and row.namespace:
                tables.append(TableLoad(path, CollectionPlan.parse(row.namespace, row.detail)))
        self._listener.planned(len(tables), left_out)
        loader = Loader(
            self._spark,
            self._lake,
            self._options.uri,
            self._options.fields,
            self._listener.loaded,
            stopping,
        )
        if not loader.run(tables):
            return
        reader = RangeReader(self._client)
        complete_from = self._deployment.ask(reader.now, LOGIN)
        first = rows[CHANGES]
        detail = {**first.detail, "complete_from": complete_from}
        loaded = {
            table.path: control.Row(
                table.path,
                self._lake.version(table.path),
                first.cut,
                control.LOADING,
                table.plan.namespace,
            )
            for table in tables
        }
        done = control.Row(CHANGES, None, first.cut, control.LOADING, None, detail)
        self._say({**loaded, CHANGES: done})

    def _follow(self, stopping: threading.Event) -> None:
        options = self._options
        checkpoint = f"{self._root}/{CHECKPOINT}"
        settings = Settings(
            included=self._included,
            soft_deletes=options.soft_deletes,
            with_tables=options.load,
            fields=options.fields,
            maintenance=MaintenanceClock(options.maintain_every_s, time.monotonic),
            applied=self._listener.applied,
        )
        applier = Applier(self._spark, self._lake, settings, checkpoint)
        self._spark.dataSource.register(TailraceSource)
        given = {**source_options(options), "startAt": format_time(applier.cut + 1)}
        rows = self._spark.readStream.format("tailrace").options(**given).load()
        writer = rows.writeStream.foreachBatch(applier).option("checkpointLocation", checkpoint)
        if options.once:
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime=options.interval).start()
        self._listener.started(applier.cut)
        try:
            self._watch(query, applier, stopping)
        finally:
            query.stop()
        if applier.error is not None:
            raise applier.error
        if (failure := query.exception()) is not None:
            raise converted(failure)

    def _watch(self, query: StreamingQuery, applier: Applier, stopping: threading.Event) -> None:
        """Wait for the query's end, or for the word to stop: a batch that runs is finished."""
        tail = Tail(self._deployment, 0)
        told = 0.0
        while query.isActive and not stopping.wait(POLL_S):
            if time.monotonic() - told < TELL_S:
                continue
            told = time.monotonic()
            with contextlib.suppress(TailraceError):  # the query itself says what is wrong
                oldest, newest = tail.bounds()
                reached = applier.cut >> 32
                self._listener.progress((newest >> 32) - reached, reached - (oldest >> 32))
        if stopping.is_set():
            applier.idle.wait(FINISH_S)
