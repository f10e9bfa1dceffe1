"""The Spark source against the server's own change stream, on the same writes, in one run.

    python benchmarks/spark.py [--events 300000] [--rounds 3] [--only insert,mixed] [--seconds 30]

A MongoDB of its own gets inserts, then mixed work (half inserts, four tenths small
``$set``, one tenth deletes). Over the same part of its oplog, in turn and several rounds
long: the server's raw ``$changeStream``; the source alone, in this process (rows as
Arrow, documents as bytes and as JSON); the source under Spark on ``local[2]`` to nowhere
(``noop``) and to a Delta table ``changes``; and a source that only makes up rows of the
same size, to the same two. The best round counts. CPU is told apart by process: Python,
the JVM, mongod. Then the latency from a write to its committed row, at a 1 s trigger, on
an idle set and on a busy one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from bson import Timestamp
from engine import MILLION, _cpu_of, _documents, _last_time
from pymongo import DeleteOne, InsertOne, MongoClient, UpdateOne
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import lit
from workload import BATCH, document, insert

from tailrace.embedded import ReplicaSet
from tailrace.spark.source.datasource import TailraceSource
from tailrace.spark.source.offsets import format_time
from tailrace.spark.source.options import parse_source_options
from tailrace.spark.source.planning import Planner
from tailrace.spark.source.reading import read_slice
from tailrace.spark.source.schema import spark_schema

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
DATABASE = "bench"
SLICES = 2
ROWS = 10_000
TIMEOUT_S = 900
IDLE_PAUSE_S = 0.2
BUSY_BATCH = 500
BUSY_PAUSE_S = 0.1
SETTINGS = {
    "spark.jars.packages": DELTA,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
}

Client = MongoClient[dict[str, Any]]


def mixed(collection: Any, count: int) -> None:
    """Half inserts, four tenths small updates, one tenth deletes."""
    for first in range(0, count, BATCH):
        writes: list[Any] = []
        for number in range(first, min(first + BATCH, count)):
            kind, target = number % 10, {"_id": number - number % 10}
            if kind < 5:
                writes.append(InsertOne(document(number)))
            elif kind < 9:
                writes.append(UpdateOne(target, {"$set": {"state": f"changed {number}"}}))
            else:
                writes.append(DeleteOne({"_id": number - number % 10 + 1}))
        collection.bulk_write(writes, ordered=True)


WORK: dict[str, Callable[[Any, int], None]] = {"insert": insert, "mixed": mixed}


@dataclass
class Spent:
    """What one run took: wall clock, and CPU by process; how long Spark's phases were."""

    wall_s: float
    cpu_s: dict[str, float]
    phases_s: dict[str, float] = field(default_factory=dict)


class MadeUp(DataSource):
    """Rows of the same size as the source's, read from nowhere."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "madeup"

    def schema(self) -> str:
        """The source's columns."""
        return spark_schema("bson")

    def reader(self, schema: Any) -> DataSourceReader:
        """What makes the rows up."""
        return MadeUpReader(self.options["rows"], int(self.options["count"]))


class MadeUpReader(DataSourceReader):
    """Gives one batch of rows, again and again."""

    def __init__(self, rows: str, count: int) -> None:
        self._rows, self._count = rows, count

    def partitions(self) -> list[InputPartition]:
        """As many as the source has slices."""
        return [InputPartition(number) for number in range(SLICES)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """This partition's share."""
        with pa.ipc.open_file(self._rows) as kept:
            rows = kept.get_batch(0)
        for _ in range(self._count // SLICES // rows.num_rows):
            yield rows


class Contest:
    """The runs over one part of the oplog."""

    def __init__(self, spark: SparkSession, replica_set: ReplicaSet, work: str, count: int):
        self.spark, self.count = spark, count
        collection = replica_set.client()[DATABASE][work]
        collection.insert_one({"_id": -1})
        last = _last_time(replica_set.client())
        WORK[work](collection, count)
        start = (last.time << 32 | last.inc) + 1
        self._collection = collection
        self._start = Timestamp(start >> 32, start & 0xFFFF_FFFF)
        self._mongod = replica_set.nodes[0].process.pid
        self._options = {
            "uri": replica_set.uri,
            "startAt": format_time(start),
            "namespaces": f"{DATABASE}.{work}",
            "documents": "bson",
            "slices": str(SLICES),
        }
        self._folder = Path(tempfile.mkdtemp(prefix="tailrace-bench-"))
        self._number = 0
        self._sample = self._folder / "rows.arrow"

    def runs(self) -> dict[str, Callable[[], dict[str, float]]]:
        """Each contestant's name and its run, which gives the phases that Spark reports."""
        return {
            "server": self._server,
            "source, bson": lambda: self._alone("bson"),
            "source, json": lambda: self._alone("json"),
            "spark to noop": lambda: self._stream("noop", "bson"),
            "spark to changes": lambda: self._stream("delta", "bson"),
            "spark to changes, json": lambda: self._stream("delta", "json"),
            "made up to noop": lambda: self._made_up("noop"),
            "made up to changes": lambda: self._made_up("delta"),
        }

    def spent(self, run: Callable[[], dict[str, float]]) -> Spent:
        """What one run took."""
        before, began = self._cpu(), time.perf_counter()
        phases = run()
        wall_s, after = time.perf_counter() - began, self._cpu()
        cpu_s = {name: after[name] - before.get(name, 0.0) for name in after}
        return Spent(wall_s, cpu_s, phases)

    def _cpu(self) -> dict[str, float]:
        """CPU so far: this process and Spark's Python workers, the JVM, mongod."""
        jvm = python = 0.0
        for pid in _descendants(os.getpid()):
            with contextlib.suppress(OSError):
                spent = _cpu_of(pid)
                if "java" in Path(f"/proc/{pid}/comm").read_text("utf-8"):
                    jvm += spent
                elif pid != self._mongod:
                    python += spent
        own = time.process_time()
        return {"python": python + own, "jvm": jvm, "mongod": _cpu_of(self._mongod)}

    def _server(self) -> dict[str, float]:
        stage = {"$changeStream": {"startAtOperationTime": self._start}}
        count = 0
        with self._collection.aggregate_raw_batches([stage]) as cursor:
            while count < self.count:
                count += _documents(bytes(next(cursor)))
        return {}

    def _alone(self, documents: str) -> dict[str, float]:
        options = parse_source_options({**self._options, "documents": documents})
        planner = Planner(options)
        count = 0
        for task in planner.tasks(*planner.range()):
            for rows in read_slice(task, options):
                count += rows.num_rows
                if not self._sample.exists() and rows.num_rows == ROWS and documents == "bson":
                    with pa.ipc.new_file(self._sample, rows.schema) as kept:
                        kept.write_batch(rows)
        _check(count, self.count)
        return {}

    def _stream(self, sink: str, documents: str) -> dict[str, float]:
        place = self._place()
        stream = self.spark.readStream.format("tailrace")
        stream = stream.options(**{**self._options, "documents": documents})
        query = (
            stream.load()
            .writeStream.format(sink)
            .option("checkpointLocation", f"{place}-checkpoint")
            .option("path", place)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(TIMEOUT_S)
        progress = [each.json for each in query.recentProgress]
        _check(sum(_number_in(each, "numInputRows") for each in progress), self.count)
        names = ("latestOffset", "queryPlanning", "addBatch", "walCommit", "commitOffsets")
        return {name: sum(_number_in(each, name) for each in progress) / 1000 for name in names}

    def _made_up(self, sink: str) -> dict[str, float]:
        rows = self.spark.read.format("madeup")
        rows = rows.options(rows=str(self._sample), count=str(self.count))
        rows.load().write.format(sink).mode("append").save(self._place())
        return {}

    def _place(self) -> str:
        self._number += 1
        return str(self._folder / f"table{self._number}")


def latency(spark: SparkSession, replica_set: ReplicaSet, seconds: float, busy: bool) -> str:
    """How long a write takes to its committed row, at a 1 s trigger."""
    folder = tempfile.mkdtemp(prefix="tailrace-bench-")
    committed: dict[int, float] = {}
    over = threading.Event()

    def append(rows: DataFrame, number: int) -> None:
        tagged = rows.select("wall_time", "operation", lit(number).alias("batch"))
        tagged.write.format("delta").mode("append").save(f"{folder}/changes")
        committed[number] = time.time()

    options = {"uri": replica_set.uri, "namespaces": f"{DATABASE}.*", "documents": "bson"}
    stream = spark.readStream.format("tailrace").options(**options).load()
    query = (
        stream.writeStream.foreachBatch(append)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime="1 second")
        .start()
    )
    writer = threading.Thread(target=_write, args=(replica_set.client(), over, busy))
    writer.start()
    query.awaitTermination(seconds)
    over.set()
    writer.join()
    query.processAllAvailable()
    query.stop()
    found = spark.read.format("delta").load(f"{folder}/changes").collect()
    waits = sorted(committed[row["batch"]] - row["wall_time"].timestamp() for row in found)
    waits = waits[len(waits) // 10 :] if len(waits) > 1 else waits
    return f"p50 {_quantile(waits, 0.5):.2f} s, p99 {_quantile(waits, 0.99):.2f} s"


def _write(client: Client, over: threading.Event, busy: bool) -> None:
    while not over.is_set():
        writes = [{"text": "x" * 200} for _ in range(BUSY_BATCH if busy else 1)]
        client[DATABASE].latency.insert_many(writes)
        over.wait(BUSY_PAUSE_S if busy else IDLE_PAUSE_S)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The Spark source against the server's stream.")
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(WORK))
    parser.add_argument("--seconds", type=float, default=30.0, help="of each latency run; 0: none")
    given = parser.parse_args()
    spark = _session()
    with ReplicaSet(cache_gb=1.0) as replica_set:
        for name in given.only:
            contest = Contest(spark, replica_set, name, given.events)
            print(f"{name}: {given.events} events, MongoDB {replica_set.version}, local[2]")
            _print(_best(contest, given.rounds), given.events)
        for busy in (False, True) if given.seconds else ():
            said = latency(spark, replica_set, given.seconds, busy)
            print(f"write to committed row, {'busy' if busy else 'idle'}: {said}", flush=True)
    spark.stop()


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    builder: Any = SparkSession.builder.master("local[2]").appName("tailrace bench")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(TailraceSource)
    spark.dataSource.register(MadeUp)
    return spark


def _best(contest: Contest, rounds: int) -> dict[str, Spent]:
    best: dict[str, Spent] = {}
    for _ in range(rounds):
        for name, run in contest.runs().items():
            spent = contest.spent(run)
            if name not in best or spent.wall_s < best[name].wall_s:
                best[name] = spent
    return best


def _print(best: dict[str, Spent], events: int) -> None:
    server = best["server"].wall_s
    print(f"{'':<24}{'events/s':>10}{'ratio':>8}   CPU s per million: python, jvm, mongod")
    for name, spent in best.items():
        cpu = ", ".join(f"{value / events * MILLION:.1f}" for value in spent.cpu_s.values())
        phases = ", ".join(f"{key} {value:.2f}" for key, value in spent.phases_s.items())
        ratio, rate = server / spent.wall_s, events / spent.wall_s
        print(f"{name:<24}{rate:>10.0f}{ratio:>8.2f}   {cpu}{'; s: ' if phases else ''}{phases}")


def _descendants(pid: int) -> list[int]:
    """The processes below one, as the kernel lists them; any of them may end meanwhile."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                for child in map(int, (task / "children").read_text("utf-8").split()):
                    found += [child, *_descendants(child)]
    return found


def _number_in(progress: str, name: str) -> int:
    """The first number of this name in a progress report; 0 without one."""
    _, found, rest = progress.partition(f'"{name}": ')
    if not found:
        _, found, rest = progress.partition(f'"{name}" : ')
    digits = rest.split(",")[0].strip("} ")
    return int(digits) if found and digits.isdigit() else 0


def _check(found: int, wanted: int) -> None:
    if found < wanted:
        raise SystemExit(f"{found} rows of {wanted}: not the whole part was read")


def _quantile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


if __name__ == "__main__":
    main()
