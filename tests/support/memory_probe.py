"""How much memory a stream takes: a process of its own that reads one and says.

    python -m tests.support.memory_probe replay FILE [WARM]
    python -m tests.support.memory_probe live URI NAMESPACE SECONDS INCREMENT EVENTS [WARM]

The first ``WARM`` events are not counted: they bring everything into memory that any
stream needs. Then the kernel's high-water mark is set back, and what it says in the end,
less what there was, is the growth. Nothing is kept of the events, as in ``tailrace watch``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bson.timestamp import Timestamp
from pymongo import MongoClient

import tailrace

REPOSITORY = Path(__file__).resolve().parents[2]
WARM = 1000
RESET_PEAK = "5"
AWAIT_MS = 100


@dataclass(frozen=True)
class Growth:
    """What a stream of so many events took beyond its first ones."""

    events: int
    kib: int

    @property
    def mib(self) -> float:
        return self.kib / 1024


def growth(*words: str, archive: Iterable[bytes] | None = None) -> Growth:
    """Run the probe; an archive is fed to its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.memory_probe", *words],
        stdin=subprocess.PIPE if archive is not None else None,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    )
    with process:
        if archive is not None:
            assert process.stdin is not None
            for piece in archive:
                process.stdin.write(piece)
            process.stdin.close()
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 0
    return Growth(**json.loads(said))


def main(kind: str, *words: str) -> None:
    if kind == "replay":
        file, *warm = words
        events: Iterator[object] = tailrace.replay(file)
    else:
        uri, namespace, seconds, increment, count, *warm = words
        events = live(uri, namespace, Timestamp(int(seconds), int(increment)), int(count))
    seen, before = 0, 0
    warm_events = int(warm[0]) if warm else WARM
    for _ in events:
        seen += 1
        if seen == warm_events:
            Path("/proc/self/clear_refs").write_text(RESET_PEAK)
            before = status("VmRSS")
    assert seen > warm_events, f"only {seen} events came"
    print(json.dumps({"events": seen, "kib": status("VmHWM") - before}))


def live(uri: str, namespace: str, start: Timestamp, count: int) -> Iterator[object]:
    with (
        MongoClient[object](uri) as client,
        tailrace.open_oplog(
            client, namespace, start_at_operation_time=start, max_await_ms=AWAIT_MS
        ) as stream,
    ):
        while count > 0:
            events, _ = stream.next_batch(max_events=min(count, 1000))
            yield from events
            count -= len(events)


def status(name: str) -> int:
    """A figure of this process, in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise LookupError(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
