"""A PostgreSQL server that exists while it is used, ready for logical replication.

``with Postgres() as postgres:`` makes a cluster in a temporary folder and starts it;
leaving ends it and removes the folder. It takes TCP connections on the loopback
address only. Writes are not forced to disk: it survives being killed, as it must,
but not a power cut.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tailrace.embedded.account import readable_copy, unprivileged
from tailrace.embedded.binaries import PostgresInstallation, postgres
from tailrace.embedded.folder import ServerFolder
from tailrace.embedded.lifetime import Lifetime
from tailrace.embedded.login import Login
from tailrace.embedded.ports import LOOPBACK, chosen_port
from tailrace.embedded.process import Process
from tailrace.errors import ServerStartFailed

START_S = 60.0
SUPERUSER = "postgres"
DATABASE = "postgres"
SHARED_MEMORY_LINE, STATUS_LINE = 6, 7
"""Which lines of ``postmaster.pid`` hold the segment's key and id, and the server's state."""
SETTINGS: dict[str, object] = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": 20,
    "max_replication_slots": 20,
    "max_prepared_transactions": 20,
    "fsync": "off",
    "dynamic_shared_memory_type": "mmap",  # goes with the folder, however the server ends
}


class Postgres(Lifetime):
    """A throw-away PostgreSQL server."""

    def __init__(
        self,
        *,
        port: int | None = None,
        installation: str | None = None,
        auth: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.port = chosen_port(port)
        self.login = Login(SUPERUSER) if auth else None
        self._settings = {**SETTINGS, "port": self.port, **(settings or {})}
        self._installation = postgres(installation)
        self._account = unprivileged()
        self._folder: ServerFolder | None = None
        self._process: Process | None = None
        self._data = Path()

    def __repr__(self) -> str:
        return f"Postgres(port={self.port})"

    def start(self) -> None:
        """Make the cluster and start its server."""
        try:
            self._folder = ServerFolder("postgres")
            self._make_cluster(self._folder.path)
            self._process = Process(
                self._command(), self._folder, "postgres", end_signal=signal.SIGQUIT
            )
            self._run()
        except BaseException:
            self.close()
            raise

    def _make_cluster(self, folder: Path) -> None:
        folder.chmod(0o711)  # the server's user passes through it
        if not self._account.can_run([self._installation.program("postgres"), "--version"]):
            self._installation = _copied(self._installation, folder / "installation")
        self._data = self._account.owned_folder(folder / "data")
        log = folder / "initdb.log"
        with log.open("wb") as output:
            made = subprocess.run(  # noqa: S603 - the installation is the caller's choice
                [*self._account.words, *self._initdb(folder)],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if made.returncode != 0:
            said = log.read_text(errors="replace")
            raise ServerStartFailed(f"initdb failed:\n{said}", log=said)

    def _initdb(self, folder: Path) -> list[str]:
        words = [self._installation.program("initdb"), "-D", str(self._data), "-U", SUPERUSER]
        words += ["--encoding=UTF8", "--locale=C", "--no-sync"]
        if self.login is None:
            return [*words, "--auth=trust"]
        secret = folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self.login.password)
        self._account.give(secret)
        return [*words, "--auth=scram-sha-256", f"--pwfile={secret}"]

    def _command(self) -> list[str]:
        words = [*self._account.words, self._installation.program("postgres")]
        words += ["-D", str(self._data)]
        for name, value in self._settings.items():
            words += ["-c", f"{name}={value}"]
        return words

    def _run(self) -> None:
        self.process.start()
        self.process.wait_for(self._ready, f"answer on port {self.port}", START_S)

    def _ready(self) -> bool:
        """Whether the server says so; a file that a killed one left names another process."""
        said = self._postmaster_file()
        return said[:1] == [str(self.process.pid)] and said[STATUS_LINE:] == ["ready"]

    def _postmaster_file(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            return [line.strip() for line in lines]
        return []

    @property
    def process(self) -> Process:
        """The server's process."""
        if self._process is None:
            raise ServerStartFailed("this PostgreSQL was not started", log="")
        return self._process

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.running

    @property
    def version(self) -> str:
        """The cluster's major version, as a word: ``18``."""
        return (self._data / "PG_VERSION").read_text().strip()

    @property
    def uri(self) -> str:
        """The superuser's connection string."""
        return self.database_uri(DATABASE)

    def database_uri(self, database: str) -> str:
        """The superuser's connection string for one database."""
        userinfo = f"{SUPERUSER}@" if self.login is None else self.login.userinfo
        return f"postgresql://{userinfo}{LOOPBACK}:{self.port}/{database}"

    def description(self) -> list[str]:
        """What somebody who uses it by hand wants to know, line by line."""
        return [f"PostgreSQL {self.version}, wal_level=logical", f"log: {self.process.log}"]

    def stop(self) -> None:
        """End it in order, with every connection."""
        self.process.stop(signal.SIGINT)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()

    def restart(self) -> None:
        """Start it again, over the same data; when it runs it is ended in order first."""
        self.stop()
        self._run()

    def freeze(self) -> None:
        """Stop it from running; its connections stay open and silent."""
        self.process.freeze()

    def thaw(self) -> None:
        """Let it run again."""
        self.process.thaw()

    def close(self) -> None:
        """End it at once, and remove its folder."""
        if self._process is not None:
            self._process.stop(signal.SIGQUIT)
            self._remove_shared_memory()
        if self._folder is not None:
            self._folder.close()

    def _remove_shared_memory(self) -> None:
        """Remove the segment that a killed server leaves in the kernel."""
        for segment in self._postmaster_file()[SHARED_MEMORY_LINE:STATUS_LINE]:
            subprocess.run(["ipcrm", "-m", segment.split()[-1]], check=False, capture_output=True)  # noqa: S603, S607


def _copied(original: PostgresInstallation, target: Path) -> PostgresInstallation:
    """An installation for every user's eyes, with what it looks for beside it."""
    top = original.folder.parent.parent
    for folder in (original.folder, *original.beside):
        readable_copy(folder, target / folder.relative_to(top))
    return PostgresInstallation(target / original.folder.relative_to(top))
