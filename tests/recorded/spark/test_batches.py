"""Recorded logs in batches of any size: the recorded stream, once, cut by the same rules."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from tests.support.cut_model import NAME, MadeUpEntry, MadeUpLog
from tests.support.recordings import load
from tests.support.source_rows import events_of_rows

from tailrace.engine.recorded import RecordedLookups
from tailrace.event.shape import parse_version
from tailrace.oplog.entry import Entry
from tailrace.spark.source.cuts import Bounds, Limit, begin, next_end
from tailrace.spark.source.offsets import Offset
from tailrace.spark.source.reading import events_of
from tailrace.spark.source.rows import Rows
from tailrace.stage.options import parse_options

VERSION = parse_version("6.0.5")
SEEDS = range(6)


class RecordedLog(MadeUpLog):
    """A recorded log under the rules; a scan runs the real stages, and sees all of it."""

    def __init__(self, raws: list[bytes]) -> None:
        super().__init__(b"")
        self.raws = sorted(raws, key=lambda raw: Entry(raw).time)
        self.entries = [_seen_from_afar(Entry(raw)) for raw in self.raws]
        self.by_time = dict(zip((entry.time for entry in self.entries), self.raws, strict=True))

    def read(self, start: Offset, end: Offset) -> list[dict[str, Any]]:
        behind, until = start.shards[NAME].start, end.shards[NAME].until
        entries = [raw for time, raw in self.by_time.items() if behind < time <= until]
        bounds = Bounds(start.cut, end.cut, start.after)
        stream = parse_options(None, None, VERSION)
        lookups = RecordedLookups(stream.shape)
        lookups.entry = self.by_time.get  # type: ignore[method-assign]
        events = events_of(entries, stream, lookups, bounds)
        found = [row for rows in Rows(NAME, "bson").batches(events) for row in rows.to_pylist()]
        lookups.close()
        return found


def _seen_from_afar(entry: Entry) -> MadeUpEntry:
    kind = "noop"
    if entry.op == b"c" and entry.is_prepare:
        kind = "prepare"
    elif entry.op == b"c" and entry.command in (b"commitTransaction", b"abortTransaction"):
        return MadeUpEntry(entry.time, "decision", decides=entry.previous or 0)
    return MadeUpEntry(entry.time, kind)


def in_batches(raws: list[bytes], seed: int) -> list[tuple[Offset, list[dict[str, Any]]]]:
    """The whole log, in batches of random size, read while it grows."""
    rng = random.Random(seed)
    log = RecordedLog(raws)
    log.visible = rng.randrange(1, len(log.entries))
    at = begin(log, log.entries[0].time)
    found = []
    while at.cut < log.entries[-1].time:
        end = next_end(log, at, Limit(rng.randrange(1, 40)))
        if end == at or rng.random() < 0.3:
            log.visible = min(len(log.entries), log.visible + rng.randrange(1, 60))
        if end != at:
            found.append((end, log.read(at, end)))
            at = end
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_prepared_transactions_come_whole_and_once(seed: int) -> None:
    recording = load("6.0.5", "prepared")
    batches = in_batches(recording.documents("oplog.bson"), seed)
    rows = [row for _, rows in batches for row in rows if row["db"] == "rec_prepared"]
    rows.sort(key=lambda row: row["token"])
    assert events_of_rows(rows) == recording.documents("stream-04.bson")


@pytest.mark.parametrize("shard", ["s1", "s2", "s3"])
def test_each_shards_rows_are_its_own_stream(shard: str) -> None:
    recording = load("6.0.5", "sharded")
    wanted = [
        stream["id"]
        for stream in recording.meta["streams"]
        if stream["mode"] == "direct" and stream["scope"] == {"cluster": True}
        if not stream["options"]
    ]
    expected = recording.documents(f"stream-{shard}-{wanted[0]:02d}.bson")
    batches = in_batches(recording.documents(f"oplog-{shard}.bson"), 1)
    rows = sorted((row for _, rows in batches for row in rows), key=lambda row: row["token"])
    ours = events_of_rows(rows)
    assert ours[-len(expected) :] == expected


def test_a_transaction_over_shards_has_one_effective_time() -> None:
    recording = load("6.0.5", "sharded")
    found: dict[Any, set[Any]] = defaultdict(set)
    shards: dict[Any, set[str]] = defaultdict(set)
    times: dict[Any, set[Any]] = defaultdict(set)
    for shard in ("s1", "s2", "s3"):
        for _, rows in in_batches(recording.documents(f"oplog-{shard}.bson"), 2):
            for row in rows:
                if row["txn"]:
                    key = (row["txn"]["lsid"], row["txn"]["number"])
                    found[key].add((row["effective_time"], row["effective_increment"]))
                    times[key].add((row["cluster_time"], row["cluster_increment"]))
                    shards[key].add(shard)
    over_shards = [key for key, names in shards.items() if len(names) > 1]
    assert over_shards
    assert all(len(found[key]) == 1 for key in over_shards)
    assert any(len(times[key]) > 1 for key in over_shards)
