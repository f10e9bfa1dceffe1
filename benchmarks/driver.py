"""Our change stream against PyMongo's, over the same events of the same server.

    python benchmarks/driver.py [--events 100000] [--rounds 3]

In turn, several rounds long: PyMongo's ``watch()`` with documents as dicts and as raw
BSON, ``aggregate_raw_batches`` (which cannot resume), and of ours ``next_batch`` (raw),
``next`` (dicts), ``next`` (raw) and ``next_batch`` of ``engine="oplog"``. The best round
counts; CPU is the client's. Before anything is measured, the events must be the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bson import Timestamp
from bson.raw_bson import DEFAULT_RAW_BSON_OPTIONS
from pymongo import MongoClient
from pymongo.collection import Collection
from workload import insert

import tailrace
from tailrace.embedded import ReplicaSet

GOAL = 2.0
"""How many times PyMongo's rate ``next_batch`` is to reach."""
BASE = "PyMongo watch, dicts"
OURS = "next_batch, raw"
LENGTH_BYTES = 4
MILLION = 1_000_000

Watched = Collection[Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took."""

    wall_s: float
    cpu_s: float


class Contest:
    """The runs over one collection's inserts."""

    def __init__(self, collection: Watched, start: Timestamp, events: int) -> None:
        self._collection = collection
        self._raw: Watched = collection.with_options(codec_options=DEFAULT_RAW_BSON_OPTIONS)
        self._start = start
        self._events = events

    def runs(self) -> dict[str, Callable[[], object]]:
        """Each contestant's name and its run."""
        return {
            BASE: lambda: self._one_by_one(self._collection.watch(**self._given())),
            "PyMongo watch, raw": lambda: self._one_by_one(self._raw.watch(**self._given())),
            "aggregate_raw_batches": self._raw_batches,
            OURS: self._batches,
            "next, dicts": lambda: self._one_by_one(self._watch(self._collection)),
            "next, raw": lambda: self._one_by_one(self._watch(self._raw)),
            'next_batch, engine="oplog"': lambda: self._batches(engine="oplog"),
        }

    def check(self) -> None:
        """Refuse to measure what is not the same."""
        theirs = b"".join(self._raw_batches())
        for engine in ("server", "oplog"):
            if b"".join(self._batches(engine=engine)) != theirs:
                raise SystemExit(f"engine={engine!r}: the events are not PyMongo's")

    def cost(self, run: Callable[[], object]) -> Cost:
        """Wall clock, and CPU of this process, of one run."""
        cpu, began = time.process_time(), time.perf_counter()
        run()
        return Cost(time.perf_counter() - began, time.process_time() - cpu)

    def _given(self) -> dict[str, Any]:
        return {"start_at_operation_time": self._start}

    def _watch(self, collection: Watched, **given: Any) -> tailrace.ChangeStream:
        return tailrace.watch(collection, **self._given(), **given)

    def _one_by_one(self, stream: Any) -> Any:
        with stream:
            for _ in range(self._events):
                event = next(stream)
        return event

    def _batches(self, **given: Any) -> list[bytes]:
        seen: list[bytes] = []
        with self._watch(self._collection, **given) as stream:
            while len(seen) < self._events:
                seen.extend([event.raw for event in stream.next_batch()[0]])
        return seen

    def _raw_batches(self) -> list[bytes]:
        stages = [{"$changeStream": {"startAtOperationTime": self._start}}]
        batches, count = [], 0
        with self._collection.aggregate_raw_batches(stages) as cursor:
            while count < self._events:
                batch = bytes(next(cursor))
                count += _documents(batch)
                batches.append(batch)
        return batches


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Our change stream against PyMongo's.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with ReplicaSet(cache_gb=1.0) as replica_set:
        contest = Contest(*_written(replica_set.client(), given.events), given.events)
        contest.check()
        best = _best(contest, given.rounds)
        print(f"MongoDB {replica_set.version}, {given.events} inserts, best of {given.rounds}")
        print(f"{'':<28}{'1000/s':>10}{'CPU us/event':>15}{'against PyMongo':>18}")
        for name, cost in best.items():
            print(_row(name, cost, best[BASE], given.events))
        ratio = best[BASE].wall_s / best[OURS].wall_s
        print(f"goal: {OURS} at {GOAL:g}x {BASE}: {'reached' if ratio >= GOAL else 'missed'}")


def _written(client: MongoClient[Any], events: int) -> tuple[Watched, Timestamp]:
    collection = client.bench.create_collection("insert")
    applied = client.admin.command("hello")["lastWrite"]["opTime"]["ts"]
    insert(collection, events)
    return collection, Timestamp(applied.time, applied.inc + 1)


def _best(contest: Contest, rounds: int) -> dict[str, Cost]:
    best: dict[str, Cost] = {}
    runs = contest.runs()
    for _ in range(rounds):
        for name, run in runs.items():
            cost = contest.cost(run)
            if name not in best or cost.wall_s < best[name].wall_s:
                best[name] = cost
    return best


def _documents(batch: bytes) -> int:
    at = count = 0
    while at < len(batch):
        at += int.from_bytes(batch[at : at + LENGTH_BYTES], "little")
        count += 1
    return count


def _row(name: str, cost: Cost, base: Cost, events: int) -> str:
    rate, cpu = events / cost.wall_s / 1000, cost.cpu_s / events * MILLION
    return f"{name:<28}{rate:>10.0f}{cpu:>15.1f}{base.wall_s / cost.wall_s:>17.2f}x"


if __name__ == "__main__":
    main()
