"""A MongoDB replica set of one to seven nodes that exists while it is used.

``with ReplicaSet() as replica_set:`` starts the nodes, initiates the set and waits
for its primary; leaving ends everything and removes the folder. What happens to
real sets can be made to happen here: a node killed, stopped, frozen, cut off from
the others, a primary stepping down. Each method returns when its effect is there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from tailrace.embedded.binaries import mongod
from tailrace.embedded.folder import ServerFolder
from tailrace.embedded.login import Login
from tailrace.embedded.mongod import MongodOptions, patience_s
from tailrace.embedded.node import Client, Node
from tailrace.embedded.ports import chosen_port, free_port
from tailrace.embedded.process import POLL_S
from tailrace.embedded.security import ROOT_ROLES, Security, make_security
from tailrace.embedded.users import Grant, create_role, create_user
from tailrace.errors import OptionError, ServerStartFailed

MOST_NODES = 7
HEARTBEAT_MS = 500
"""How often members ask after each other; the server's 2 s make every change slow."""
CATCH_UP_S = 10
"""How long a primary that steps down waits for a secondary to catch up and take over."""

T = TypeVar("T")


class ReplicaSet:
    """A replica set of throw-away servers."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        port: int | None = None,
        binary: str | None = None,
        auth: bool = False,
        tls: bool = False,
        **options: Any,
    ) -> None:
        if not 1 <= nodes <= MOST_NODES:
            raise OptionError(f"a set has 1 to {MOST_NODES} nodes, not {nodes}", option="nodes")
        self.options = MongodOptions(**options)
        self.build = mongod(binary)
        self.nodes: list[Node] = []
        self.security = Security()
        """The secrets, made at the start."""
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

    def __enter__(self) -> ReplicaSet:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
        for number, port in enumerate(self._ports):
            node = Node(
                f"{self.name}-{number}",
                port,
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
        if self.security.root is not None:
            create_user(self.primary().client, self.security.root, ROOT_ROLES)
        self._version = str(first.client.server_info()["version"])

    def _configuration(self) -> dict[str, Any]:
        members = [{"_id": at, "host": node.address} for at, node in enumerate(self.nodes)]
        settings = {"heartbeatIntervalMillis": HEARTBEAT_MS}
        config: dict[str, Any] = {"_id": self.name, "members": members, "settings": settings}
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

    def primary(self) -> Node:
        """The primary; waits for one. Of two that believe it, the later elected."""
        return self._wait(self._newest_primary, "primary")

    def secondaries(self) -> list[Node]:
        """The nodes that are secondaries now."""
        return [node for node in self.nodes if node.hello().get("secondary")]

    def await_members(self) -> None:
        """Wait for a primary, and until every other running node is its secondary."""

        def settled() -> Node | None:
            primary = self._newest_primary()
            others = [node for node in self.nodes if node.running and node is not primary]
            return primary if all(node.hello().get("secondary") for node in others) else None

        self._wait(settled, "primary with all its secondaries")

    def step_down(self, seconds: int = 60) -> Node:
        """Have the primary step down; returns the next one (of one node: itself again)."""
        old = self.primary()
        if len(self.nodes) == 1:
            old.command("replSetStepDown", seconds, force=True)
            old.command("replSetFreeze", 0)
        else:
            old.command("replSetStepDown", seconds, secondaryCatchUpPeriodSecs=CATCH_UP_S)
        return self.primary()

    def step_up(self, node: Node) -> None:
        """Have a node elected now, not when a time-out says so; it must reach a majority."""

        def elected() -> bool | None:
            # Refused while a voter does not know the set yet, or lags behind.
            with contextlib.suppress(OperationFailure):
                node.command("replSetStepUp")
                return True
            return None

        self._wait(elected, f"election of {node.name}")

    def kill(self, node: Node) -> None:
        """End a node as a power cut would."""
        node.kill()

    def stop(self, node: Node) -> None:
        """End a node in order."""
        node.stop()

    def restart(self, node: Node) -> None:
        """Start a node again, over the same data; one that runs is ended in order first."""
        node.stop()
        node.start()
        node.await_up()
        self._wait(lambda: node if _is_member(node) else None, f"{node.name} as a member")

    def freeze(self, node: Node) -> None:
        """Stop a node from running; its connections stay open and silent."""
        node.freeze()

    def thaw(self, node: Node) -> None:
        """Let a frozen node run again."""
        node.thaw()

    @contextlib.contextmanager
    def fail_point(
        self,
        name: str,
        mode: str | dict[str, int] = "alwaysOn",
        *,
        node: Node | None = None,
        **data: Any,
    ) -> Iterator[Node]:
        """A fail point on a node (the primary), on inside the block; needs test commands."""
        target = node or self.primary()
        target.command("configureFailPoint", name, mode=mode, data=data)
        try:
            yield target
        finally:
            with contextlib.suppress(PyMongoError):
                target.command("configureFailPoint", name, mode="off")

    def close(self) -> None:
        """End all of it, and remove its folder."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        for node in self.nodes:
            node.close()
        if self._folder is not None:
            self._folder.close()

    def _newest_primary(self) -> Node | None:
        claims = [
            (said["electionId"], at)
            for at, node in enumerate(self.nodes)
            if (said := node.hello()).get("isWritablePrimary")
        ]
        return self.nodes[max(claims)[1]] if claims else None

    def _wait(self, condition: Callable[[], T | None], what: str) -> T:
        within_s = patience_s(self.build)
        deadline = time.monotonic() + within_s
        while (found := condition()) is None:
            if time.monotonic() > deadline:
                logs = "\n".join(node.process.log_tail() for node in self.nodes)
                raise ServerStartFailed(f"{self.name}: no {what} within {within_s:g} s", log=logs)
            time.sleep(POLL_S)
        return found


def _is_member(node: Node) -> bool:
    said = node.hello()
    return bool(said.get("isWritablePrimary") or said.get("secondary"))
