"""A directory of oplog archives read in parallel: one task for each file.

The files are pieces of one log, in any order and packing; where each begins decides
their order. A transaction that ends in one file and began in another is put together
from both. Files that overlap would give events twice, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from tailrace.errors import BadArchive, OptionError
from tailrace.event.shape import parse_version
from tailrace.oplog.archive import Archive
from tailrace.oplog.entry import Entry
from tailrace.oplog.slices import time_of
from tailrace.oplog.spool import TransactionSpool
from tailrace.spark.source.cuts import Bounds
from tailrace.spark.source.options import SourceOptions
from tailrace.spark.source.reading import events_of
from tailrace.spark.source.rows import Rows
from tailrace.stage.lookups import NoLookups
from tailrace.stage.options import StreamOptions, parse_options
from tailrace.stage.scope import Selection

SUFFIXES = (".bson", ".bson.gz", ".bson.zst")
END_OF_TIME = (1 << 64) - 1
LOG = "archives"
"""The shard's name in rows of archives: their files are pieces of one log."""


@dataclass(frozen=True)
class Piece:
    """One file, and the time of its first entry."""

    path: str
    first: int


@dataclass(frozen=True)
class ArchiveTask:
    """One file to read; the pieces are all of the directory's, in the log's order."""

    pieces: tuple[Piece, ...]
    number: int
    bounds: Bounds
    stream: StreamOptions


def archive_tasks(options: SourceOptions) -> list[ArchiveTask]:
    """The files of the directory (or the one file) that the options name."""
    place = Path(options.archives)
    paths = sorted(place.iterdir()) if place.is_dir() else [place]
    paths = [path for path in paths if path == place or path.name.endswith(SUFFIXES)]
    if not paths or not place.exists():
        raise OptionError(
            f"archives: {place} holds no file that ends in {', '.join(SUFFIXES)}", option="archives"
        )
    pieces = tuple(sorted(filter(None, map(_piece, paths)), key=lambda piece: piece.first))
    start, end = options.start, options.end.time
    bounds = Bounds((start.time or 0) - 1, END_OF_TIME if end is None else end, after=start.token)
    selection = Selection(options.namespaces, options.exclude_namespaces)
    stream = replace(
        parse_options(None, None, parse_version(options.server_version)), selection=selection
    )
    return [ArchiveTask(pieces, number, bounds, stream) for number in range(len(pieces))]


def _piece(path: Path) -> Piece | None:
    first = next(iter(Archive(path)), None)
    return None if first is None else Piece(str(path), time_of(first))


def read_archive(task: ArchiveTask, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """The rows of one file."""
    with closing(_Earlier(task)) as lookups:
        events = events_of(_entries(task), task.stream, lookups, task.bounds)
        yield from Rows(LOG, options.documents).batches(events)


def _entries(task: ArchiveTask) -> Iterator[bytes]:
    behind = task.number + 1
    until = task.pieces[behind].first if behind < len(task.pieces) else END_OF_TIME
    path = task.pieces[task.number].path
    for entry in Archive(path):
        if time_of(entry) >= until:
            raise BadArchive(
                f"{path} reaches into {task.pieces[behind].path}: archives must not overlap",
                archive=path,
            )
        yield entry


class _Earlier(NoLookups):
    """The earlier entries of transactions: this file's as it is read, others' when asked for."""

    def __init__(self, task: ArchiveTask) -> None:
        self._pieces = task.pieces[: task.number]
        self._own = TransactionSpool()
        self._read: dict[str, TransactionSpool] = {}

    def remember(self, entry: Entry) -> None:
        """Keep an entry of a transaction that goes on."""
        self._own.remember(entry)

    def forget(self, entry: Entry) -> None:
        """Drop the entries of a transaction that ended."""
        self._own.forget(entry)

    def entry(self, time: int) -> bytes | None:
        """An entry of this file or of the one before it in which it must stand."""
        own = self._own.entry(time)
        if own is not None:
            return own
        within = [piece for piece in self._pieces if piece.first <= time]
        return self._spool(within[-1].path).entry(time) if within else None

    def close(self) -> None:
        """Give back what was spooled."""
        for spool in (self._own, *self._read.values()):
            spool.close()

    def _spool(self, path: str) -> TransactionSpool:
        spool = self._read.get(path)
        if spool is None:
            spool = self._read[path] = TransactionSpool()
            for raw in Archive(path):
                entry = Entry(raw)
                if entry.command == b"applyOps" and (entry.is_partial or entry.is_prepare):
                    spool.remember(entry)
        return spool
