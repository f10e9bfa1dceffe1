"""The ``tailrace`` command, run as a user runs it: a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from typer.testing import CliRunner

from tailrace.cli.app import app

COMMAND = (sys.executable, "-c", "from tailrace.cli.app import main; main()")
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    status: int
    out: bytes
    err: str

    @property
    def error_line(self) -> str:
        """The one line on standard error."""
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        return self.err.rstrip("\n")


def tailrace(*words: str, stdin: bytes = b"") -> Result:
    """Run the command in this process: fast, and the same but for the operating system."""
    result = CliRunner().invoke(app, list(words), input=stdin, prog_name="tailrace")
    unexpected = result.exception if not isinstance(result.exception, SystemExit) else None
    if unexpected is not None:
        raise unexpected
    return Result(result.exit_code, result.stdout_bytes, result.stderr)


def tailrace_process(*words: str, stdin: bytes = b"") -> Result:
    """Run the command in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *words], input=stdin, capture_output=True, check=False, timeout=PATIENCE_S
    )
    return Result(done.returncode, done.stdout, done.stderr.decode())


def start_tailrace(*words: Sequence[str] | str) -> subprocess.Popen[bytes]:
    """Start the command with pipes at its ends; the caller ends it."""
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
