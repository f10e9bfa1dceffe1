"""Whom a server runs as: ourselves, or nobody where we are root and it will not be.

PostgreSQL refuses to run as root. As root its commands then start through
``setpriv``, its folders are given to that user, and an installation that this user
cannot read is copied to where it can.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.errors import MissingServer

NOBODY = 65534
"""The user and group that own nothing, by custom and by the kernel's overflow default."""
AS_HIMSELF = ("/bin/sh", "-c", 'exec "$0" "$@"')
"""The shell in between has lost root's rights; ``setpriv`` itself still reads everything."""
NOT_NEEDED = ("include", "doc", "man")
"""What no server reads of its installation."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine; None is whoever runs this process."""

    uid: int | None = None

    @property
    def words(self) -> list[str]:
        """What stands before a command so that this user runs it."""
        if self.uid is None:
            return []
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]

    def can_run(self, command: Sequence[str]) -> bool:
        """Whether this user can run a command, from the root folder, to its good end."""
        done = subprocess.run(  # noqa: S603 - the caller's own program
            [*self.words, *AS_HIMSELF, *command], cwd="/", capture_output=True, check=False
        )
        return done.returncode == 0

    def owned_folder(self, path: Path) -> Path:
        """A new folder that is this user's alone."""
        path.mkdir(mode=0o700)
        self.give(path)
        return path

    def give(self, path: Path) -> None:
        """Make a file or folder this user's."""
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)


def unprivileged() -> Account:
    """The user for a server that refuses to run as root."""
    if os.geteuid() != 0:
        return Account()
    if shutil.which("setpriv") is None:
        raise MissingServer(
            "setpriv (of util-linux) is not here, and PostgreSQL does not run as root: "
            "install it, or run as another user",
            hint="apt-get install util-linux",
        )
    return Account(NOBODY)


def readable_copy(source: Path, target: Path) -> None:
    """Copy a folder of an installation so that every user can read and run it."""
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(*NOT_NEEDED))
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o444 | (0o111 if path.is_dir() or mode & 0o100 else 0))
