"""The engine against the server's own change stream, verb by verb, on one machine.

    python benchmarks/engine.py [--events 100000] [--rounds 3] [--verbs insert,update] [--page FILE]

A MongoDB of its own gets the writes of one verb; then, over the same part of its oplog,
in turn and several rounds long: a raw scan (nobody looks at the entries), the server's
own ``$changeStream`` (raw replies), and of the engine: decode (an ``Entry`` for each),
transform (entries to events), the whole ``replay``, and a filtered one, whose query drops
every event before it is built. The best round counts; CPU is
that of the client and the server together. Before anything is measured, the events of
``replay`` must be the server's, byte for byte. ``--page`` writes it all down, for readers.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bson import Timestamp
from pymongo import MongoClient
from workload import VERBS, fill

import tailrace
from tailrace.embedded import ReplicaSet
from tailrace.event.event import Event
from tailrace.event.shape import parse_version
from tailrace.oplog.archive import Archive
from tailrace.oplog.entry import Entry
from tailrace.stage.lookups import NoLookups
from tailrace.stage.match import OplogMatch
from tailrace.stage.options import parse_options
from tailrace.stage.transform import Transform
from tailrace.stage.unwind import UnwindTransactions

DATABASE = "bench"
DROPS_ALL = [{"$match": {"operationType": "none"}}]
"""What is left of an event's cost when a filter drops it before it is built."""
GOAL = 0.6
"""The share of the server's rate that ``replay`` is to reach."""
LENGTH_BYTES = 4
USER_TICKS, SYSTEM_TICKS = 11, 12
"""Where /proc/<pid>/stat has them, counted behind the process's name."""
MILLION = 1_000_000
UNITS = "thousand events a second; in brackets: CPU seconds per million events"
HEADS = (
    "verb",
    ["scan", "server", "decode", "transform", "replay", "filtered", "replay/server"],
)
PAGE = """\
<!-- written by benchmarks/engine.py --page -->
# Speed

What the engine reaches on one core, beside the server's own change stream over the same
entries in the same run. `make bench-engine` says what it is on your machine.

{how}; {cpus} processors. In {units} of client and server together.

{table}

*scan* reads the raw entries and looks at none, *server* is `$changeStream` with its raw
replies, *decode* finds the fields of each entry, *transform* makes events of entries, and
*replay* does all of it from an archive. The last column is what counts: rates differ from
machine to machine, and from one hour to the next.
"""

Client = MongoClient[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Span:
    """The part of an oplog that one verb wrote, and where its events are asked for."""

    namespace: str
    before: Timestamp
    until: Timestamp
    events: int


class Contest:
    """The runs over one verb's part of the oplog."""

    def __init__(self, replica_set: ReplicaSet, client: Client, span: Span) -> None:
        self._client = client
        self._span = span
        self._version = replica_set.version
        self._server_pid = replica_set.nodes[0].process.pid
        self.archive = b"".join(self._oplog())
        self.entries = list(Archive(self.archive))
        options = parse_options(None, span.namespace, parse_version(self._version))
        match = OplogMatch(options, NoLookups())
        unwind = UnwindTransactions(match, options.shape, NoLookups())
        self._matched: Callable[[], Iterator[Entry]] = lambda: unwind(match(self.entries))
        self._transform = Transform(options)

    def runs(self) -> dict[str, Callable[[], object]]:
        """Each contestant's name and its run."""
        prepared = list(self._matched())
        return {
            "scan": lambda: sum(map(len, self._oplog())),
            "server": self.server_events,
            "decode": lambda: [Entry(raw).time for raw in self.entries],
            "transform": lambda: _exhaust(self._transform(prepared)),
            "replay": lambda: _exhaust(self._replay()),
            "filtered": lambda: _exhaust(self._replay(pipeline=DROPS_ALL)),
        }

    def server_events(self) -> list[bytes]:
        """The server's own stream over the span, as raw batches."""
        database, _, collection = self._span.namespace.partition(".")
        after = Timestamp(self._span.before.time, self._span.before.inc + 1)
        stages = [{"$changeStream": {"startAtOperationTime": after}}]
        batches, count = [], 0
        with self._client[database][collection].aggregate_raw_batches(stages) as cursor:
            while count < self._span.events:
                batch = bytes(next(cursor))
                count += _documents(batch)
                batches.append(batch)
        return batches

    def check(self) -> None:
        """Refuse to measure what is not the same."""
        ours = b"".join(event.raw for event in self._replay())
        if ours != b"".join(self.server_events()):
            raise SystemExit(f"{self._span.namespace}: the events are not the server's")

    def cost(self, run: Callable[[], object]) -> Cost:
        """Wall clock, and CPU of this process and the server, of one run."""
        cpu = time.process_time() + _cpu_of(self._server_pid)
        began = time.perf_counter()
        run()
        wall_s = time.perf_counter() - began
        return Cost(wall_s, time.process_time() + _cpu_of(self._server_pid) - cpu)

    def _oplog(self) -> Iterator[bytes]:
        wanted = {"ts": {"$gt": self._span.before, "$lte": self._span.until}}
        yield from self._client.local["oplog.rs"].find_raw_batches(wanted)

    def _replay(self, **more: Any) -> Iterator[Any]:
        return tailrace.replay(
            self.archive, namespace=self._span.namespace, server_version=self._version, **more
        )


def main() -> None:
    """Measure and print, verb by verb."""
    given = _arguments()
    with ReplicaSet(cache_gb=1.0) as replica_set:
        client = replica_set.client()
        how = f"MongoDB {replica_set.version}, {given.events} events a verb, best of {given.rounds}"
        print(how)
        print(UNITS)
        print(_row(*HEADS))
        rows = []
        for verb in given.verbs:
            contest = Contest(replica_set, client, _written(client, verb, given.events))
            contest.check()
            best = _best(contest, given.rounds)
            cells = [_cell(best[name], given.events) for name in best]
            ratio = best["server"].wall_s / best["replay"].wall_s
            cells.append(f"{ratio:.2f}{'' if ratio >= GOAL else f' (goal: {GOAL})'}")
            rows.append((verb, cells))
            print(_row(verb, cells), flush=True)
    if given.page is not None:
        given.page.write_text(_page(how, rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The engine against the server's own stream.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--verbs", type=lambda text: text.split(","), default=list(VERBS))
    parser.add_argument("--page", type=Path, help="a file to write it down in, as Markdown")
    given = parser.parse_args()
    unknown = set(given.verbs) - set(VERBS)
    if unknown:
        parser.error(f"no verb {', '.join(sorted(unknown))}: {', '.join(VERBS)} are")
    return given


def _written(client: Client, verb: str, events: int) -> Span:
    """Write what a verb needs, then what is measured."""
    collection = client[DATABASE][verb]
    fill(collection, verb, events)
    before = _last_time(client)
    VERBS[verb](collection, events)
    return Span(f"{DATABASE}.{verb}", before, _last_time(client), events)


def _best(contest: Contest, rounds: int) -> dict[str, Cost]:
    best: dict[str, Cost] = {}
    runs = contest.runs()
    for _ in range(rounds):
        for name, run in runs.items():
            cost = contest.cost(run)
            if name not in best or cost.wall_s < best[name].wall_s:
                best[name] = cost
    return best


def _cpu_of(pid: int) -> float:
    """The CPU seconds of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")


def _last_time(client: Client) -> Timestamp:
    last: Timestamp = next(client.local["oplog.rs"].find().sort("$natural", -1).limit(1))["ts"]
    return last


def _exhaust(events: Iterator[Event | Any]) -> int:
    return sum(1 for _ in events)


def _documents(batch: bytes) -> int:
    at = count = 0
    while at < len(batch):
        at += int.from_bytes(batch[at : at + LENGTH_BYTES], "little")
        count += 1
    return count


def _cell(cost: Cost, events: int) -> str:
    return f"{events / cost.wall_s / 1000:.0f} [{cost.cpu_s / events * MILLION:.1f}]"


def _page(how: str, rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    name, heads = HEADS
    lines = [(name, heads), ("---", ["---:"] * len(heads)), *rows]
    table = "\n".join("| " + " | ".join([first, *cells]) + " |" for first, cells in lines)
    return PAGE.format(how=how, cpus=os.cpu_count(), units=UNITS, table=table)


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<13}" + "".join(f"{cell:>15}" for cell in cells)


if __name__ == "__main__":
    main()
