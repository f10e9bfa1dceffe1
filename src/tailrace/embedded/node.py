"""One mongod of a set: its process, its address, and a client straight to it.

A node knows nothing of its set's state; it starts, ends, freezes, and takes
commands. Its client is made when first asked for, goes to this node and no other,
and is closed with the node.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import ConnectionFailure, PyMongoError

from tailrace.embedded.binaries import Mongod
from tailrace.embedded.folder import ServerFolder
from tailrace.embedded.mongod import MongodOptions, command, environment, patience_s
from tailrace.embedded.ports import LOOPBACK, answers
from tailrace.embedded.process import Process
from tailrace.embedded.security import Security

Client = MongoClient[dict[str, Any]]

PROBE_MS = 2_000
"""How long a question about a node's state may take before it counts as no answer."""


class Node:
    """One mongod, on a port that it keeps."""

    def __init__(
        self,
        name: str,
        port: int,
        *,
        public_port: int,
        build: Mongod,
        options: MongodOptions,
        security: Security,
        folder: ServerFolder,
    ) -> None:
        self.name = name
        self.port = port
        self.address = f"{LOOPBACK}:{public_port}"
        """Where the other members and replica set clients reach it."""
        self._security = security
        self.frozen = False
        self.data: Path = folder.path / name
        self._patience_s = patience_s(build)
        self._client: Client | None = None
        self._prober: Client | None = None
        self.process = Process(
            command(build, options, security, port, self.data),
            folder,
            name,
            environment=environment(build),
        )

    def __repr__(self) -> str:
        return f"Node({self.name!r}, port={self.port})"

    @property
    def running(self) -> bool:
        """Whether it could answer now: started, not ended, not frozen."""
        return self.process.running and not self.frozen

    @property
    def guarded(self) -> bool:
        """Whether a bare connection gets nowhere."""
        return self._security.guarded

    def start(self) -> None:
        """Start the process; ``await_up`` waits for it."""
        self.data.mkdir(exist_ok=True)
        self.process.start()

    def await_up(self) -> None:
        """Wait until it takes connections."""
        self.process.wait_for(
            lambda: answers(self.port), f"answer on port {self.port}", self._patience_s
        )

    def stop(self) -> None:
        """End it in order, as an operator would."""
        self._ended()
        self.process.stop(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._ended()
        self.process.kill()

    def freeze(self) -> None:
        """Stop it from running; its connections stay open and silent."""
        self.frozen = True
        self.process.freeze()

    def thaw(self) -> None:
        """Let it run again."""
        self.process.thaw()
        self.frozen = False

    def direct(self, **options: Any) -> Client:
        """A new client that talks to this node only; the caller closes it."""
        given = {
            "directConnection": True,
            **self._security.client_options(self._security.system),
            **options,
        }
        return MongoClient(LOOPBACK, self.port, **given)

    @property
    def client(self) -> Client:
        """The node's own client, straight to it; it is who the servers are to each other."""
        if self._client is None:
            self._client = self.direct()
        return self._client

    def command(self, name: str, value: Any = 1, /, **fields: Any) -> dict[str, Any]:
        """Run an admin command on this node."""
        return self.client.admin.command(name, value, **fields)

    def hello(self) -> Mapping[str, Any]:
        """What it says of itself now; empty when it gives no answer."""
        if not self.running:
            return {}
        if self._prober is None:
            self._prober = self.direct(serverSelectionTimeoutMS=PROBE_MS, timeoutMS=PROBE_MS)
        try:
            return self._prober.admin.command("hello")
        except ConnectionFailure:
            return {}
        except PyMongoError as error:
            if error.timeout:
                return {}
            raise

    def forget_clients(self) -> None:
        """Close the clients; the next use makes new ones."""
        for client in (self._client, self._prober):
            if client is not None:
                client.close()
        self._client = self._prober = None

    def _ended(self) -> None:
        self.frozen = False
        self.forget_clients()

    def close(self) -> None:
        """End the process at once, and close the clients."""
        self.kill()
