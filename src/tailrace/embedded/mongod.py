"""How one mongod is asked for: its options, and the command line that they become.

``MongodOptions`` is what a caller may choose for every node of a set; ``command``
turns it into words for a build (packaged, on the path, or a Windows build under
Wine, which reads other paths). Pure: no process is started here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tailrace.embedded.binaries import Mongod
from tailrace.embedded.ports import LOOPBACK
from tailrace.embedded.security import Security
from tailrace.errors import OptionError

Role = Literal["configsvr", "shardsvr"]

START_S = 60.0
"""How long a mongod may take to answer, or a set to elect: a busy machine is slow."""
WINE_FACTOR = 4.0
"""How much longer the Windows build may take; its first start makes the Wine prefix."""

QUIET: dict[str, object] = {
    "diagnosticDataCollectionEnabled": False,  # costs I/O; crashes the build under Wine
    "shutdownTimeoutMillisForSignaledShutdown": 0,  # a primary would wait 15 s to stop
    "writePeriodicNoops": True,
}
WINE_ENVIRONMENT = {"WINEDEBUG": "-all", "WINEARCH": "win64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MongodOptions:
    """What every node of a set is started with."""

    replica_set: str = "rs0"
    role: Role | None = None
    """A config server or a shard of a sharded cluster; None for a plain replica set."""
    oplog_size_mb: int = 1024
    cache_gb: float = 0.25
    noop_interval_s: int = 10
    """How often an idle primary writes a no-op, as the server's own default."""
    test_commands: bool = True
    """Fail points and other commands that a server in production refuses."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Server parameters, which win over all that is set here."""
    arguments: Sequence[str] = ()
    """Further words for the command line."""

    def __post_init__(self) -> None:
        if self.oplog_size_mb < 1:
            raise OptionError("oplog_size_mb must be 1 or more", option="oplog_size_mb")

    def all_parameters(self) -> dict[str, object]:
        """The server parameters, ours first, the caller's over them."""
        return {
            "enableTestCommands": self.test_commands,
            "periodicNoopIntervalSecs": self.noop_interval_s,
            **QUIET,
            **self.parameters,
        }


def command(
    build: Mongod, options: MongodOptions, security: Security, port: int, data: Path
) -> list[str]:
    """The words that start a node of a set on this port and data directory."""
    words = [*build.words, "--replSet", options.replica_set]
    words += ["--port", str(port), "--bind_ip", LOOPBACK, "--dbpath", build.path(data)]
    words += ["--oplogSize", str(options.oplog_size_mb)]
    words += ["--wiredTigerCacheSizeGB", f"{options.cache_gb:g}"]
    if not build.wine:
        words.append("--nounixsocket")
    if options.role is not None:
        words.append(f"--{options.role}")
    for name, value in options.all_parameters().items():
        words += ["--setParameter", f"{name}={_text(value)}"]
    return [*words, *security.server_words(build), *options.arguments]


def environment(build: Mongod) -> dict[str, str] | None:
    """The environment of a build's processes; None for this process's own."""
    return {**WINE_ENVIRONMENT, **os.environ} if build.wine else None


def patience_s(build: Mongod) -> float:
    """How long to wait for what this build does at its start."""
    return START_S * (WINE_FACTOR if build.wine else 1.0)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
