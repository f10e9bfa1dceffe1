"""One stream over many shards: how throughput grows, and how long an event waits.

    python benchmarks/router.py [--events 50000] [--real 1,2,3,4] [--simulated 1,4,16,64]

*real* reads the live oplogs of a cluster of that many shards, each with its share of the
events. *simulated* merges as many archives in this process: the stages and the merge
without a server, and the merge alone, over events that were made before. *wait* is what
passes between an acknowledged write on one shard and its event, while all others are idle
and write their no-op every 10 s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import bson
from bson import Binary, Timestamp

import tailrace
from tailrace.embedded import ShardedCluster
from tailrace.event.event import Event
from tailrace.event.shape import parse_version
from tailrace.router import Merge
from tailrace.stage.options import Caller, parse_options
from tailrace.stage.shard import ShardStream
from tailrace.token import high_water_mark

VERSION = "6.0.5"
DOCUMENT = {"name": "x" * 40, "n": 12345678, "tags": ["a", "b", "c"], "text": "y" * 120}
COMMAND_DOCUMENTS = 1_000
BATCH_EVENTS = 500
WAITS = 100
THOUSAND = 1_000
COLLECTION = Binary(bytes(range(16)), 4)
START = 1_700_000_000
PER_SECOND = 1_000
"""Entries that share a second of cluster time."""
BEGINNING = (high_water_mark(1, 1), b"")


def main() -> None:
    """Measure and print, one line for each number of shards."""
    given = _arguments()
    print(f"{os.cpu_count()} processors, {given.events} events; thousand events a second")
    for shards in given.simulated:
        archives = _archives(shards, given.events)
        whole, merge = _replayed(archives, given.events), _merged(archives, given.events)
        print(f"simulated {shards:3}   replay {whole:8.1f}   merge alone {merge:8.1f}", flush=True)
    for shards in given.real:
        rate, cpu, waits = _live(shards, given.events)
        p50, p99 = statistics.median(waits), statistics.quantiles(waits, n=100)[-1]
        print(
            f"real      {shards:3}   live   {rate:8.1f}   our CPU {cpu:4.0%}   "
            f"wait p50 {p50 * THOUSAND:4.0f} ms, p99 {p99 * THOUSAND:4.0f} ms",
            flush=True,
        )


def _arguments() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(each) for each in text.split(",") if each]

    parser = argparse.ArgumentParser(description="One stream over many shards.")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--real", type=numbers, default=[1, 2, 3, 4])
    parser.add_argument("--simulated", type=numbers, default=[1, 2, 4, 8, 16, 32, 64])
    return parser.parse_args()


def _archives(shards: int, events: int) -> dict[str, bytes]:
    """Inserts dealt out to shards in turn, each at its own time."""
    dealt: dict[str, list[bytes]] = defaultdict(list)
    for number in range(events):
        entry = {
            "op": "i",
            "ns": "bench.things",
            "ui": COLLECTION,
            "o": {"_id": number, **DOCUMENT},
            "o2": {"_id": number},
            "ts": Timestamp(START + number // PER_SECOND, number % PER_SECOND + 1),
            "t": bson.Int64(1),
            "v": bson.Int64(2),
            "wall": bson.DatetimeMS(START * THOUSAND + number),
        }
        dealt[f"s{number % shards}"].append(bson.encode(entry))
    return {name: b"".join(entries) for name, entries in dealt.items()}


def _replayed(archives: dict[str, bytes], events: int) -> float:
    began = time.perf_counter()
    count = sum(1 for _ in tailrace.replay(archives, server_version=VERSION))
    return _rate(count, events, began)


def _merged(archives: dict[str, bytes], events: int) -> float:
    """The merge alone, fed in batches by whichever shard it waits for."""
    options = parse_options(None, None, parse_version(VERSION), caller=Caller(mongos=True))
    merge: Merge[Event] = Merge(BEGINNING)
    batches: dict[str, Iterator[list[Event]]] = {}
    for name, archive in archives.items():
        merge.add(name, BEGINNING)
        made = list(ShardStream(options).run(bson_documents(archive)))
        batches[name] = iter(
            [made[at : at + BATCH_EVENTS] for at in range(0, len(made), BATCH_EVENTS)]
        )
    began = time.perf_counter()
    count = 0
    while (name := merge.awaited) is not None:
        batch = next(batches[name], None)
        if batch is None:
            merge.end(name)
        else:
            merge.feed(name, batch, (batch[-1].token, batch[-1].type_bits))
        count += sum(1 for _ in merge.ready())
    return _rate(count, events, began)


def bson_documents(data: bytes) -> Iterator[bytes]:
    """Each document of concatenated BSON."""
    at = 0
    while at < len(data):
        end = at + int.from_bytes(data[at : at + 4], "little")
        yield data[at:end]
        at = end


def _live(shards: int, events: int) -> tuple[float, float, list[float]]:
    """Thousand events a second, the share of a processor that we took, and the waits."""
    with ShardedCluster(shards, cache_gb=0.5) as cluster:
        config = cluster.config.client()
        with tailrace.open_oplog(config, "bench", max_await_ms=100) as stream:
            position = stream.resume_token
        each = events // shards
        for number, shard in enumerate(cluster.shards.values()):
            _fill(shard.client(), number * each, each)
        began, cpu = time.perf_counter(), time.process_time()
        count = 0
        with tailrace.open_oplog(config, "bench", start_after=position) as stream:
            while count < each * shards:
                count += len(stream.next_batch()[0])
        took_s = time.perf_counter() - began
        rate = _rate(count, each * shards, began)
        return rate, (time.process_time() - cpu) / took_s, _waits(cluster, config)


def _fill(client: Any, first: int, count: int) -> None:
    for start in range(first, first + count, COMMAND_DOCUMENTS):
        end = min(start + COMMAND_DOCUMENTS, first + count)
        client.bench.things.insert_many([{"_id": at, **DOCUMENT} for at in range(start, end)])


def _waits(cluster: ShardedCluster, config: Any) -> list[float]:
    busy = cluster.shards["s1"].client()
    waits = []
    with tailrace.open_oplog(config, "wait", max_await_ms=500) as stream:
        for number in range(WAITS):
            busy.wait.things.insert_one({"_id": number})
            written = time.perf_counter()
            while not stream.next_batch()[0]:
                pass
            waits.append(time.perf_counter() - written)
    return waits


def _rate(count: int, expected: int, began: float) -> float:
    if count != expected:
        raise SystemExit(f"{count} events instead of {expected}")
    return count / (time.perf_counter() - began) / THOUSAND


if __name__ == "__main__":
    main()
