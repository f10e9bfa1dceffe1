"""A MongoDB replica set of one to seven nodes that exists while it is used.

``with ReplicaSet() as replica_set:`` starts the nodes, initiates the set and waits
for its primary; leaving ends everything and removes the folder. What can be asked of
its nodes comes from ``Members``, and what can happen to them from ``Faults``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import MongoClient

from tailrace.embedded.binaries import mongod
from tailrace.embedded.faults import Faults
from tailrace.embedded.folder import ServerFolder
from tailrace.embedded.lifetime import Lifetime
from tailrace.embedded.login import Login
from tailrace.embedded.mongod import MongodOptions
from tailrace.embedded.network import Network
from tailrace.embedded.node import Client, Node
from tailrace.embedded.ports import chosen_port, free_port
from tailrace.embedded.security import ROOT_ROLES, Security, make_security
from tailrace.embedded.users import Grant, create_role, create_user
from tailrace.errors import OptionError, UnsupportedSource

MOST_NODES = 7
HEARTBEAT_MS = 500
"""How often members ask after each other; the server's 2 s make every change slow."""
ELECTION_TIMEOUT_MS = 10_000
"""How long a set goes without its primary, as the server's own default."""


class ReplicaSet(Faults, Lifetime):
    """A replica set of throw-away servers."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        port: int | None = None,
        binary: str | None = None,
        auth: bool = False,
        tls: bool = False,
        partitionable: bool = False,
        election_timeout_ms: int = ELECTION_TIMEOUT_MS,
        **options: Any,
    ) -> None:
        if not 1 <= nodes <= MOST_NODES:
            raise OptionError(f"a set has 1 to {MOST_NODES} nodes, not {nodes}", option="nodes")
        self.options = MongodOptions(**options)
        self.build = mongod(binary)
        self.nodes: list[Node] = []
        self.security = Security()
        """The secrets, made at the start."""
        self._settings = {
            "heartbeatIntervalMillis": HEARTBEAT_MS,
            "electionTimeoutMillis": election_timeout_ms,
        }
        if tls and self.build.wine:
            raise UnsupportedSource("the Windows build has no TLS under Wine", option="tls")
        if partitionable and (tls or not self.options.test_commands):
            raise OptionError(
                "partitionable needs test_commands, and no tls", option="partitionable"
            )
        self.network = Network() if partitionable else None
        self._wants_security = {"auth": auth, "tls": tls}
        self._ports = [chosen_port(port), *(free_port() for _ in range(nodes - 1))]
        self._folder: ServerFolder | None = None
        self._clients: list[Client] = []
        self._version = ""

    def __repr__(self) -> str:
        return f"ReplicaSet({self.name!r}, {self.hosts!r})"

    @property
    def name(self) -> str:
        """The set's name."""
        return self.options.replica_set

    def start(self, security: Security | None = None) -> None:
        """Start the nodes, initiate the set, and wait for its primary and members.

        The members of a cluster are given its secrets; a set of its own makes them.
        """
        try:
            self._folder = ServerFolder(self.name)
            self.security = security or make_security(self._folder.path, **self._wants_security)
            self._start(self._folder)
        except BaseException:
            self.close()
            raise

    def _start(self, folder: ServerFolder) -> None:
        for number, public_port in enumerate(self._ports):
            node = Node(
                f"{self.name}-{number}",
                self._own_port(public_port),
                public_port=public_port,
                build=self.build,
                options=self.options,
                security=self.security,
                folder=folder,
            )
            self.nodes.append(node)
            node.start()
        for node in self.nodes:
            node.await_up()
        first = self.nodes[0]
        first.command("replSetInitiate", self._configuration())
        self.step_up(first)
        self.await_members()
        for node in self.nodes:
            node.forget_clients()  # their connections know nothing of a set, nor of sessions
        if self.security.root is not None:
            create_user(self.primary().client, self.security.root, ROOT_ROLES)
        self._version = str(first.client.server_info()["version"])

    def _own_port(self, public_port: int) -> int:
        """Where a node listens: behind its bridge, if there are any."""
        return public_port if self.network is None else self.network.behind(public_port)

    def _configuration(self) -> dict[str, Any]:
        members = [{"_id": at, "host": node.address} for at, node in enumerate(self.nodes)]
        config: dict[str, Any] = {
            "_id": self.name,
            "members": members,
            "settings": self._settings,
        }
        if self.options.role == "configsvr":
            config["configsvr"] = True
        return config

    @property
    def version(self) -> str:
        """The server's version."""
        return self._version

    @property
    def hosts(self) -> str:
        """The members' addresses, as in a URI."""
        return ",".join(node.address for node in self.nodes)

    @property
    def uri(self) -> str:
        """The set's connection string; with ``auth``, of the user who may do everything."""
        return self.uri_as(self.security.root)

    def uri_as(self, login: Login | None) -> str:
        """The set's connection string for one user; None for none."""
        return self.security.uri(self.hosts, login, replicaSet=self.name)

    def add_user(self, user: str, *roles: Grant, database: str = "admin") -> Login:
        """A new user with these roles, each a name in its database or ``{role, db}``."""
        login = Login(user, database=database)
        create_user(self.primary().client, login, roles)
        return login

    def add_role(
        self, role: str, *privileges: Mapping[str, Any], roles: Sequence[Grant] = ()
    ) -> str:
        """A new role in ``admin``, of privileges and other roles."""
        create_role(self.primary().client, role, privileges, roles)
        return role

    @property
    def running(self) -> bool:
        """Whether the process of every node is there."""
        return all(node.process.running for node in self.nodes)

    def description(self) -> list[str]:
        """What somebody who uses it by hand wants to know, line by line."""
        what = f"MongoDB {self.version}, replica set {self.name} of {len(self.nodes)}"
        return [what, *(f"log: {log}" for log in self.logs())]

    def logs(self) -> list[str]:
        """Where the nodes write their logs."""
        return [str(node.process.log) for node in self.nodes]

    def client(self, login: Login | None = None, **options: Any) -> Client:
        """A new client of the set, for a user or for root; closed with it at the latest."""
        made: Client = MongoClient(self.uri_as(login or self.security.root), **options)
        self._clients.append(made)
        return made

    def close(self) -> None:
        """End all of it, and remove its folder."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        for node in self.nodes:
            node.close()
        if self.network is not None:
            self.network.close()
        if self._folder is not None:
            self._folder.close()
