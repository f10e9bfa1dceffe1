"""One server process: started in its folder, and ended for certain.

A shell writes the process id to the folder and then becomes the server, so that the
watchdog can never miss one. The server has a session of its own: Ctrl-C in a
terminal reaches tailrace, which ends its servers in order. Its output is its log.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from tailrace.embedded import family
from tailrace.embedded.folder import ServerFolder
from tailrace.errors import ServerStartFailed

BECOME_SERVER = 'echo "$$ $1" >"$0" || exit 1; shift; exec "$@"'
POLL_S = 0.02
STOP_S = 30.0
LOG_TAIL_CHARS = 2000


class Process:
    """A server's process, which may be started again after it ended."""

    def __init__(
        self,
        command: Sequence[str],
        folder: ServerFolder,
        name: str,
        *,
        end_signal: int = signal.SIGKILL,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.name = name
        self.log = folder.path / f"{name}.log"
        self._pid_file = folder.path / f"{name}.pid"
        self._end_signal = end_signal
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; 0 when it does not run."""
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        """Whether the process is there (a frozen one is)."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; the log goes on where it was."""
        words = [str(self._pid_file), str(int(self._end_signal)), *self.command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the caller's choice
                ["/bin/sh", "-c", BECOME_SERVER, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self._environment) if self._environment is not None else None,
                cwd=self.log.parent,
                start_new_session=True,
            )

    def stop(self, end_signal: int = signal.SIGTERM, within_s: float = STOP_S) -> None:
        """End it by a signal; by SIGKILL when it does not obey in time."""
        if self._process is None:
            return
        self.signal(end_signal)
        if end_signal != signal.SIGKILL:
            self.thaw()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self._process.wait()
        self._process = None
        self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """End it and its children as a power cut would."""
        if self.running:
            family.kill(self.pid)
        self.stop(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop it and its children from running, connections and all, until ``thaw``."""
        if self.running:
            family.freeze(self.pid)

    def thaw(self) -> None:
        """Let it and its children go on."""
        if self.running:
            family.thaw(self.pid)

    def signal(self, number: int) -> None:
        """Send a signal, if there is a process to take it."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def log_tail(self) -> str:
        """The end of the log."""
        if not self.log.exists():
            return ""
        return self.log.read_text(errors="replace")[-LOG_TAIL_CHARS:]

    def wait_for(self, condition: Callable[[], bool], what: str, within_s: float) -> None:
        """Wait until the server does what it should; its log is in the error if not."""
        deadline = time.monotonic() + within_s
        while not condition():
            if not self.running:
                raise self._failed(f"{self.name} ended before {what}")
            if time.monotonic() > deadline:
                raise self._failed(f"{self.name}: no {what} within {within_s:g} s")
            time.sleep(POLL_S)

    def _failed(self, message: str) -> ServerStartFailed:
        tail = self.log_tail()
        return ServerStartFailed(f"{message}; its log ends with:\n{tail}", log=tail)
