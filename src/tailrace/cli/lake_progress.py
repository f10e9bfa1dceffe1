"""How ``tailrace sync`` is doing: bars while it loads, one line while it follows.

On a terminal the words are written over; in a log a line comes now and then, and always
for what happens once. Spark calls from threads of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from tailrace.cli.status import CLEAR_LINE, span

LOG_EVERY_S = 10.0


class LakeProgress:
    """Tells a person, or a log, what the job says."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._console = Console(stderr=True, soft_wrap=True, highlight=False)
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._said_at = 0.0
        self._rows = 0
        self._total = 0

    def __enter__(self) -> LakeProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_bars()
        self._clear()
        if error is None:
            self._line(f"stopped; {self._total:,} events in {self._target}, the next run goes on")

    def planned(self, tables: int, left_out: Mapping[str, str]) -> None:
        """Say what is loaded, and what is not."""
        for namespace, reason in left_out.items():
            self._line(f"left out: {namespace}: {reason}")
        self._line(f"loading {tables} collections into {self._target}")
        if self._console.is_terminal and tables:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bars = Progress(*columns, console=self._console, transient=True)
            self._bars.start()

    def loaded(self, namespace: str, done: int, ranges: int) -> None:
        """Move a collection's bar."""
        with self._lock:
            if self._bars is None:
                if done == ranges:
                    self._line(f"loaded {namespace}")
                return
            if namespace not in self._tasks:
                self._tasks[namespace] = self._bars.add_task(namespace, total=ranges)
            self._bars.update(self._tasks[namespace], completed=done)

    def started(self, cut: int) -> None:
        """Say from where the log is followed."""
        self._end_bars()
        self._line(f"following the log into {self._target} from {moment(cut)} on")
        self._since = time.monotonic()

    def applied(self, rows: int, cut: int, seconds: float) -> None:
        """Count a batch."""
        with self._lock:
            self._rows += rows
            self._total += rows

    def progress(self, behind_s: int, window_s: int) -> None:
        """Renew the line."""
        now = time.monotonic()
        if not self._console.is_terminal and now - self._said_at < LOG_EVERY_S:
            return
        with self._lock:
            rate, self._rows = self._rows / max(now - self._since, 0.001), 0
            self._since = self._said_at = now
        text = sync_text(rate, self._total, behind_s, window_s)
        if self._console.is_terminal:
            self._console.file.write(CLEAR_LINE + text)
            self._console.file.flush()
        else:
            self._line(text)

    def _line(self, text: str) -> None:
        self._clear()
        self._console.print(text, markup=False)

    def _clear(self) -> None:
        if self._console.is_terminal and self._bars is None:
            self._console.file.write(CLEAR_LINE)
            self._console.file.flush()

    def _end_bars(self) -> None:
        bars, self._bars = self._bars, None
        if bars is not None:
            bars.stop()


def sync_text(rate: float, total: int, behind_s: int, window_s: int) -> str:
    """The line's words."""
    return (
        f"{rate:,.0f} events/s · {total:,} in all · {span(behind_s)} behind · "
        f"{span(window_s)} of the oplog left"
    )


def moment(cut: int) -> str:
    """A cluster time for people."""
    seconds = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(cut >> 32))
    return f"{seconds} UTC ({cut >> 32}, {cut & 0xFFFF_FFFF})"
