"""What cleans up when the process that started servers is gone, even by SIGKILL.

A small process of its own, started once per Python process and told over a pipe
which server folders exist. The end of that pipe is the signal: whoever held it is
dead. It then ends every server that left a pid file in such a folder, and removes
the folder. Renaming the folder first closes the door: a server that is just being
started writes its pid file before it becomes the server, and can no longer.

This file runs as a bare script, so it imports nothing of tailrace.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

END_GRACE_S = 5.0
"""How long a server may take to end by its own signal before SIGKILL."""

GONE = "ZX"
"""The kernel's letters for a process that ended, and waits at most to be reaped."""


class Watchdog:
    """The pipe to the watchdog process of this Python process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, folder: Path) -> None:
        """Have the folder and its servers removed when this process dies."""
        self._tell(f"+{folder}\n")

    def remove(self, folder: Path) -> None:
        """Forget a folder that was cleaned up in the ordinary way."""
        self._tell(f"-{folder}\n")

    def forget_parent(self) -> None:
        """In a forked child: let go of the pipe, so that only the parent's death counts."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None
        self._lock = threading.Lock()

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._process is None:
                self._process = _start()
            stdin = self._process.stdin
            if stdin is None:
                raise OSError("the watchdog has no pipe")
            stdin.write(line.encode())
            stdin.flush()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own file under our own interpreter
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        bufsize=0,  # a forked child must have nothing to flush when it lets go
    )


def main() -> None:
    """Take notes until the pipe ends, then clean up what is left."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    folders: dict[str, None] = {}
    for line in sys.stdin:
        sign, path = line[0], line[1:].rstrip("\n")
        if sign == "+":
            folders[path] = None
        else:
            folders.pop(path, None)
    clean_up([Path(path) for path in folders])


def clean_up(folders: list[Path]) -> None:
    """End the servers of these folders and remove the folders."""
    doomed = [closed for folder in folders if (closed := _close_door(folder)) is not None]
    servers = [entry for folder in doomed for entry in pid_files(folder)]
    for pid, end_signal in servers:
        send(pid, end_signal)
    deadline = time.monotonic() + END_GRACE_S
    for pid, _ in servers:
        while alive(pid):
            if time.monotonic() > deadline:
                send(pid, signal.SIGKILL)
                break
            time.sleep(0.02)
    for folder in doomed:
        shutil.rmtree(folder, ignore_errors=True)


def pid_files(folder: Path) -> list[tuple[int, int]]:
    """The servers of a folder: process id, and the signal that ends it at once."""
    found = []
    for path in folder.glob("*.pid"):
        with contextlib.suppress(ValueError):
            pid, end_signal = path.read_text().split()
            found.append((int(pid), int(end_signal)))
    return found


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone or stopped."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)


def state(pid: int) -> str:
    """The kernel's letter for what a process does; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int) -> bool:
    """Whether a process still runs; one that only waits to be reaped does not."""
    return state(pid) not in GONE


def _close_door(folder: Path) -> Path | None:
    closed = folder.with_name(folder.name + ".gone")
    try:
        folder.rename(closed)
    except FileNotFoundError:
        return None
    return closed


WATCHDOG = Watchdog()
"""The one watchdog of this Python process."""

if __name__ == "__main__":
    main()
else:
    os.register_at_fork(after_in_child=WATCHDOG.forget_parent)
