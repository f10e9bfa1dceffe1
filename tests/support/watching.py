"""``tailrace watch`` in a process of its own, started, ended or killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "from tailrace.cli.app import main; main()", "watch"]


class Watch:
    """One run of the command; its output goes to a file of its own."""

    def __init__(self, uri: str, output: Path, *words: str) -> None:
        self.output = output
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [*PROGRAM, uri, *words], stdout=file, stderr=subprocess.PIPE, env=os.environ
            )

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it in order; gives its status."""
        self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.wait()

    def wait(self, within_s: float = 60) -> int:
        """Wait for its end; gives its status."""
        status = self.process.wait(within_s)
        self.said = self.process.stderr.read().decode() if self.process.stderr else ""
        if self.process.stderr:
            self.process.stderr.close()
        return status

    def events(self) -> list[dict[str, Any]]:
        """The events that were written, without a last line that was cut off."""
        lines = self.output.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines[:-1]]
