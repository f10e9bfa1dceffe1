"""The temporary folder of a server or a set of servers.

Everything that a server writes lies here: data, log, keys, process ids. The folder
is removed with its owner, and by the watchdog when its owner was killed. Logs can be
kept: they are copied to the folder named by ``TAILRACE_SERVER_LOGS`` on removal.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tailrace.embedded.watchdog import WATCHDOG

LOGS_VARIABLE = "TAILRACE_SERVER_LOGS"
PREFIX = "tailrace-"


class ServerFolder:
    """A temporary folder that the watchdog knows."""

    live: list[ServerFolder] = []  # noqa: RUF012 - one list for the process, on purpose
    """The folders that exist now, for whoever wants to look at their logs."""

    def __init__(self, name: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name}-"))
        WATCHDOG.add(self.path)
        ServerFolder.live.append(self)

    def logs(self) -> list[Path]:
        """The log files of the folder's servers."""
        return sorted(self.path.glob("*.log"))

    def copy_logs(self, target: Path) -> None:
        """Copy the logs to a folder, each named after this folder too."""
        target.mkdir(parents=True, exist_ok=True)
        for log in self.logs():
            shutil.copy(log, target / f"{self.path.name}-{log.name}")

    def close(self) -> None:
        """Keep the logs if asked to, and remove everything."""
        if self not in ServerFolder.live:
            return
        ServerFolder.live.remove(self)
        if kept := os.environ.get(LOGS_VARIABLE):
            self.copy_logs(Path(kept))
        shutil.rmtree(self.path, ignore_errors=True)
        WATCHDOG.remove(self.path)
