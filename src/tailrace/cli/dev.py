"""``tailrace dev up``: a real throw-away server that lives as long as the command.

The connection string is the one line on standard output; what else is good to know
goes to standard error. Ctrl-C, SIGTERM or a closed terminal ends the server and
removes its folder; after SIGKILL the watchdog does.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated, Any, Protocol

import typer

from tailrace.cli.output import errors_in_one_line, say
from tailrace.embedded import Postgres, ReplicaSet, ShardedCluster
from tailrace.errors import OptionError, ServerStartFailed

WATCH_S = 0.5
"""How often it looks whether the server still runs."""
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends the command; a shell has its background jobs ignore SIGINT."""

app = typer.Typer(no_args_is_help=True, help="Servers for development.")


class Kind(str, Enum):
    """What can be started."""

    MONGODB = "mongodb"
    SHARDED = "sharded"
    POSTGRES = "postgres"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for on the command line; None where nothing was said."""

    port: int | None
    nodes: int | None
    shards: int | None
    auth: bool | None
    tls: bool | None

    def only(self, kind: Kind, *names: str) -> dict[str, Any]:
        """What was asked for; an option that this kind does not have is an error."""
        asked = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in asked.items() if value is not None}
        for name in given.keys() - set(names):
            raise OptionError(f"{kind.value} has no --{name}", option=f"--{name}")
        return given


class Server(Protocol):
    """What the command needs of a server that is up."""

    @property
    def uri(self) -> str:
        """The connection string."""

    @property
    def running(self) -> bool:
        """Whether all its processes are there."""

    def description(self) -> list[str]:
        """What is good to know, line by line."""


def _mongodb(wish: Wish) -> AbstractContextManager[Server]:
    return ReplicaSet(**wish.only(Kind.MONGODB, "port", "nodes", "auth", "tls"))


def _sharded(wish: Wish) -> AbstractContextManager[Server]:
    return ShardedCluster(**wish.only(Kind.SHARDED, "port", "nodes", "shards", "auth", "tls"))


def _postgres(wish: Wish) -> AbstractContextManager[Server]:
    return Postgres(**wish.only(Kind.POSTGRES, "port", "auth"))


STARTERS: dict[Kind, Callable[[Wish], AbstractContextManager[Server]]] = {
    Kind.MONGODB: _mongodb,
    Kind.SHARDED: _sharded,
    Kind.POSTGRES: _postgres,
}


@app.callback()
def servers() -> None:
    """Servers for development."""


@app.command()
def up(
    kind: Annotated[Kind, typer.Argument(help="What to start.")],
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="A free one without.")] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Members of each replica set.")] = None,
    shards: Annotated[int | None, typer.Option(min=1, help="Of a sharded cluster.")] = None,
    auth: Annotated[bool, typer.Option("--auth", help="With a user and a password.")] = False,
    tls: Annotated[bool, typer.Option("--tls", help="With an authority of its own.")] = False,
) -> None:
    """Start a server, print its connection string, and end it with this command."""
    wish = Wish(port=port, nodes=nodes, shards=shards, auth=auth or None, tls=tls or None)
    with ended_by_signals(), errors_in_one_line(), STARTERS[kind](wish) as server:
        sys.stdout.write(server.uri + "\n")
        sys.stdout.flush()
        for line in server.description():
            say(line)
        say("Ctrl-C ends it and removes its data.")
        with contextlib.suppress(KeyboardInterrupt):
            _stay_while_running(server)


def _stay_while_running(server: Server) -> None:
    while server.running:
        time.sleep(WATCH_S)
    raise ServerStartFailed("the server ended by itself")


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have every signal that asks for the end come as Ctrl-C does."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
