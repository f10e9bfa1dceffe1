"""A server's process and its children, frozen, thawed and killed together.

PostgreSQL has a process for each connection, mongod has none. The parent is stopped
first, so that it neither makes new children nor sees them die. Everything returns
when its effect is there. Where there is no ``/proc``, only the parent is known.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tailrace.embedded.watchdog import GONE, state

STOPPED = "T"
WITHIN_S = 10.0
POLL_S = 0.002


def freeze(parent: int) -> list[int]:
    """Stop a process and its children from running; the children are returned."""
    _send([parent], signal.SIGSTOP)
    _wait_until([parent], lambda now: now in STOPPED + GONE)
    found = children(parent)
    _send(found, signal.SIGSTOP)
    _wait_until(found, lambda now: now in STOPPED + GONE)
    return found


def thaw(parent: int) -> None:
    """Let a frozen process and its children go on."""
    _send([*children(parent), parent], signal.SIGCONT)


def kill(parent: int) -> None:
    """End a process and its children as a power cut would."""
    family = [*freeze(parent), parent]
    _send(family, signal.SIGKILL)
    _wait_until(family, lambda now: now in GONE)


def children(parent: int) -> list[int]:
    """The processes that a process started and that still are its children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            after_name = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(after_name[1]) == parent:
                found.append(int(stat.parent.name))
    return found


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait_until(pids: Iterable[int], settled: Callable[[str], bool]) -> None:
    """Wait for the kernel: a signal that was sent has not yet been obeyed."""
    deadline = time.monotonic() + WITHIN_S
    while not all(settled(state(pid)) for pid in pids):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {pids} did not obey within {WITHIN_S:g} s")
        time.sleep(POLL_S)
