"""A directory of archives: the recorded stream, wherever the log was cut into files."""

from __future__ import annotations

import gzip
import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.support.recordings import load
from tests.support.source_rows import events_of_rows

from tailrace.errors import BadArchive, OptionError
from tailrace.oplog.entry import Entry
from tailrace.spark.source.archives import archive_tasks, read_archive
from tailrace.spark.source.options import SourceOptions, parse_source_options

PACKERS = {".bson": bytes, ".bson.gz": gzip.compress, ".bson.zst": zstandard.compress}


def options(folder: Path, **more: str) -> SourceOptions:
    given = {"archives": str(folder), "serverVersion": "6.0.5", "documents": "bson"}
    return parse_source_options({**given, "namespaces": "rec_prepared.*", **more})


def rows_of(parsed: SourceOptions) -> list[dict[str, Any]]:
    found = [
        row
        for task in archive_tasks(parsed)
        for rows in read_archive(task, parsed)
        for row in rows.to_pylist()
    ]
    return sorted(found, key=lambda row: row["token"])


def raws() -> list[bytes]:
    return sorted(load("6.0.5", "prepared").documents("oplog.bson"), key=lambda e: Entry(e).time)


@pytest.mark.parametrize("seed", range(4))
def test_pieces_of_a_log_are_the_recorded_stream(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    entries = raws()
    cuts = sorted({0, len(entries), *(rng.randrange(len(entries)) for _ in range(2 + seed * 4))})
    for number, (start, end) in enumerate(itertools.pairwise(cuts)):
        suffix = rng.choice(list(PACKERS))
        name = f"{(number * 7919) % 1000:03d}{suffix}"
        (tmp_path / name).write_bytes(PACKERS[suffix](b"".join(entries[start:end])))
    (tmp_path / "metadata.json").write_text("{}", "utf-8")
    (tmp_path / "empty.bson").write_bytes(b"")
    expected = load("6.0.5", "prepared").documents("stream-04.bson")
    assert events_of_rows(rows_of(options(tmp_path))) == expected


def test_files_that_overlap_are_refused(tmp_path: Path) -> None:
    entries = raws()
    (tmp_path / "a.bson").write_bytes(b"".join(entries[:20]))
    (tmp_path / "b.bson").write_bytes(b"".join(entries[10:]))
    with pytest.raises(BadArchive, match="must not overlap"):
        rows_of(options(tmp_path))


def test_a_directory_without_archives_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="holds no file"):
        archive_tasks(options(tmp_path))
    with pytest.raises(OptionError, match="holds no file"):
        archive_tasks(options(tmp_path / "nowhere"))


def test_a_range_of_an_archive_holds_what_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.bson").write_bytes(b"".join(raws()))
    whole = rows_of(options(tmp_path))
    first, last = whole[5], whole[-5]
    start, end = (
        f"Timestamp({int(row['cluster_time'].timestamp())}, {row['cluster_increment']})"
        for row in (first, last)
    )
    some = rows_of(options(tmp_path, startAt=start, endAt=end))
    assert some == [
        row for row in whole if _effective(first) <= _effective(row) <= _effective(last)
    ]


def _effective(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["effective_time"], row["effective_increment"]
