"""A lake for tests: one target, filled by the job itself, and what its tables say."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pyspark.sql import SparkSession

from tailrace.spark.apply import control
from tailrace.spark.apply.control import CURRENT
from tailrace.spark.lake import DeltaLake
from tailrace.spark.sync import Sync, SyncOptions
from tailrace.spark.verify import Report, VerifyOptions, verify

Client = MongoClient[dict[str, Any]]
RAW: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)


class Quiet:
    """A listener that remembers what it was told."""

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}
        self.rows: list[int] = []
        self.loads: list[tuple[str, int, int]] = []

    def planned(self, tables: int, left_out: Mapping[str, str]) -> None:
        self.left_out = dict(left_out)

    def loaded(self, namespace: str, done: int, ranges: int) -> None:
        self.loads.append((namespace, done, ranges))

    def started(self, cut: int) -> None:
        pass

    def applied(self, rows: int, cut: int, seconds: float) -> None:
        self.rows.append(rows)

    def progress(self, behind_s: int, window_s: int) -> None:
        pass


class TestLake:
    """A target below a folder."""

    __test__ = False

    def __init__(self, spark: SparkSession, uri: str, folder: Path) -> None:
        self.spark = spark
        self.uri = uri
        self.folder = folder
        self.lake = DeltaLake(spark, str(folder))

    def sync(self, **options: Any) -> Quiet:
        """Run the job to the end of what is there."""
        told = Quiet()
        asked = SyncOptions(uri=self.uri, to=str(self.folder), once=True, **options)
        Sync(self.spark, asked, told).run(threading.Event())
        return told

    def verify(self) -> Report:
        """Compare with the source."""
        return verify(
            self.spark, VerifyOptions(uri=self.uri, to=str(self.folder)), lambda table: None
        )

    @property
    def rows(self) -> dict[str, control.Row]:
        """The last rows of ``control``."""
        return control.last_rows(self.lake)

    def tables(self) -> dict[str, control.Row]:
        """Namespaces and the last rows of their tables."""
        return {
            row.namespace: row
            for path, row in self.rows.items()
            if path.startswith(CURRENT) and row.namespace and row.state != control.LEFT_OUT
        }

    def documents(self) -> dict[str, list[bytes]]:
        """Every document of every table, sorted; empty ones are left out."""
        found = {
            namespace: sorted(
                bytes(each["bson"])
                for each in self.lake.read(row.table, row.version).where("not deleted").collect()
            )
            for namespace, row in self.tables().items()
        }
        return {namespace: documents for namespace, documents in found.items() if documents}

    def versions(self) -> dict[str, int]:
        """The newest version of each table, ``changes`` included."""
        names = [*(row.table for row in self.tables().values()), control.CHANGES]
        return {name: self.lake.version(name) for name in names}

    def rewind(self, batches: int) -> None:
        """Take the query's last batches back, as if they had never been."""
        for kind in ("offsets", "commits"):
            numbers = sorted(int(path.name) for path in self._notes(kind))
            for number in numbers[len(numbers) - batches :]:
                self._forget(kind, number)

    def forget_commits(self) -> None:
        """Take away the notes of which batches are done."""
        for path in self._notes("commits"):
            self._forget("commits", int(path.name))

    def forget_checkpoint(self) -> None:
        """Take away all that Spark noted."""
        shutil.rmtree(self.folder / "checkpoint")

    def _notes(self, kind: str) -> list[Path]:
        return [
            path for path in (self.folder / "checkpoint" / kind).iterdir() if path.name.isdigit()
        ]

    def _forget(self, kind: str, number: int) -> None:
        folder = self.folder / "checkpoint" / kind
        (folder / str(number)).unlink()
        (folder / f".{number}.crc").unlink(missing_ok=True)


def source_documents(client: Client, *databases: str) -> dict[str, list[bytes]]:
    """Every document of the databases, sorted; empty collections are left out."""
    found = {
        f"{database}.{each['name']}": sorted(
            bytes(document.raw)
            for document in client[database].get_collection(each["name"], RAW).find()
        )
        for database in databases
        for each in client[database].list_collections()
        if each["type"] == "collection" and not each["name"].startswith("system.")
    }
    return {namespace: documents for namespace, documents in found.items() if documents}
