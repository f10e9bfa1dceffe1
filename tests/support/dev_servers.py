"""``tailrace dev up`` as a process of its own, to be used, ended and killed.

A ``DevServer`` has been started and has said its connection string; where its folder
is and which processes it has is read from what it left on the disk, so that a test
can see them go.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.waiting import eventually

from tailrace.embedded.folder import PREFIX
from tailrace.embedded.watchdog import alive, pid_files

MAIN = "from tailrace.cli.app import main; main()"
LOG = re.compile(rf"{re.escape(tempfile.gettempdir())}/{PREFIX}\S+?\.log")


class DevServer:
    """A running ``tailrace dev up``."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._said = folder / "stderr"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAIN, "dev", "up", *words],
                stdout=subprocess.PIPE,
                stderr=said,
            )
        assert self.process.stdout is not None
        self.uri = self.process.stdout.readline().decode().removesuffix("\n")
        if not self.uri:
            self.end(signal.SIGKILL)
            raise AssertionError(f"no connection string: {self.said}")
        eventually(lambda: "Ctrl-C" in self.said, "the last hint")
        self.folders = sorted({Path(log).parent for log in LOG.findall(self.said)})
        self.pids = [pid for folder in self.folders for pid, _ in pid_files(folder)]

    @property
    def said(self) -> str:
        """What it wrote to standard error so far."""
        return self._said.read_text()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, bytes]:
        """Send it a signal; its exit status, and what else stood on standard output."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=60)
        return self.process.returncode, rest

    def traces(self) -> list[str]:
        """What is left of its servers: folders and processes."""
        left = [f"{path}*" for path in self.folders if list(path.parent.glob(path.name + "*"))]
        return left + [f"process {pid}" for pid in self.pids if alive(pid)]


@pytest.fixture
def dev_up(tmp_path: Path) -> Iterator[Callable[..., DevServer]]:
    """Start ``tailrace dev up`` with these words; it ends with the test."""
    started: list[DevServer] = []

    def start(*words: str) -> DevServer:
        started.append(DevServer(tmp_path, *words))
        return started[-1]

    yield start
    for server in started:
        server.end(signal.SIGKILL)
        eventually(lambda server=server: not server.traces(), "the watchdog cleaned up")
