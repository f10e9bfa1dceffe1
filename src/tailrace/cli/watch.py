"""``tailrace watch``: the change events of a live deployment.

Events go to standard output, a batch at a time; a status line goes to standard error
when that is a terminal. With ``--state`` the place is stored after each batch that
was written out: a run that was killed repeats its last batch at most, and loses
nothing. SIGINT and SIGTERM end the command cleanly, with status 0, as does an
invalidate; 2 is bad usage, 3 an error that the server would raise.

The events are made from the oplog by our own engine; where that may not or cannot be
read, and with ``--engine server``, they are the server's own change stream.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from bson.timestamp import Timestamp
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import ConnectionFailure, PyMongoError

from tailrace.cli.connection import client_of
from tailrace.cli.metrics import Metrics
from tailrace.cli.output import (
    Format,
    FormatOption,
    NamespaceOption,
    RelaxedOption,
    errors_in_one_line,
    event_writer,
    in_one_line,
    pymongo_errors_as_ours,
    say,
)
from tailrace.cli.shards import ShardCredentialsOption, credentials_of
from tailrace.cli.signals import until_signalled
from tailrace.cli.state import StateFile
from tailrace.cli.status import StatusLine
from tailrace.cli.values import (
    cluster_time,
    json_array,
    json_value_or_text,
    token_document,
)
from tailrace.driver import ChangeStream
from tailrace.driver import watch as watch_target
from tailrace.errors import OptionError, PrivilegeError, UnsupportedSource

AWAIT_MS = 500
"""How long a signal may have to wait for a batch that does not come."""
NOW = "now"
WATCH_PARAMETERS = frozenset(inspect.signature(watch_target).parameters)
Target = MongoClient[dict[str, Any]] | Database[dict[str, Any]] | Collection[dict[str, Any]]
_HEX = re.compile(r"[0-9a-fA-F]{18,}")
"""What cannot be a time: a token has at least its cluster time."""


class Engine(str, Enum):
    """Who makes the events."""

    OPLOG = "oplog"
    SERVER = "server"


def watch(
    uri: Annotated[
        list[str],
        typer.Argument(help="A replica set, a cluster's config server, or each of its shards."),
    ],
    namespace: NamespaceOption = None,
    option: Annotated[
        list[str] | None, typer.Option(help="A $changeStream option, name=value; repeatable.")
    ] = None,
    pipeline: Annotated[str | None, typer.Option(help="Stages to append, a JSON array.")] = None,
    start: Annotated[
        str, typer.Option("--from", help="A token in hex, an ISO time, Timestamp(t, i), or now.")
    ] = NOW,
    state: Annotated[
        Path | None, typer.Option(help="Remember the place in this file, and go on from it.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Who makes the events: we from the oplog, or the server.")
    ] = Engine.OPLOG,
    no_advance: Annotated[
        bool, typer.Option("--no-advance", help="Do not make idle shards write no-ops.")
    ] = False,
    shard_credentials: ShardCredentialsOption = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve metrics for Prometheus on this local port.")
    ] = None,
    form: FormatOption = Format.JSONL,
    relaxed: RelaxedOption = False,
) -> None:
    """Print the change events of a replica set or a sharded cluster as they happen."""
    with errors_in_one_line(), pymongo_errors_as_ours():
        given = {
            **stream_options(option or []),
            **start_of(start),
            "pipeline": json_array("--pipeline", pipeline),
            "max_await_time_ms": AWAIT_MS,
            "token_store": None if state is None else StateFile(state, namespace),
        }
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(client_of(each)) for each in uri]
            reading = {"advance": not no_advance, **credentials_of(shard_credentials)}
            if len(clients) > 1:
                reading["shards"] = clients
            target = target_of(clients[0], namespace)
            stream = stack.enter_context(_opened(target, engine, given, reading))
            metrics = Metrics(stream.lag, stream.shards)
            if metrics_port is not None:
                stack.enter_context(metrics.served(metrics_port))
            _run(stream, event_writer(form, relaxed=relaxed), metrics)


def _opened(
    target: Target, engine: Engine, given: dict[str, Any], reading: dict[str, Any]
) -> ChangeStream:
    """The stream that was asked for, or the server's own when the oplog may not be read."""
    if engine is Engine.SERVER:
        return watch_target(target, **given)
    try:
        return watch_target(target, engine="oplog", engine_options=reading, **given)
    except (PrivilegeError, UnsupportedSource) as reason:
        try:
            stream = watch_target(target, **given)
        except PyMongoError:
            raise reason from None  # what was asked for comes first
        say(f"tailrace: {in_one_line(reason)}; reading the server's own change stream")
        return stream


def _run(stream: ChangeStream, write: Callable[[bytes], None], metrics: Metrics) -> None:
    stopping = until_signalled()
    status = StatusLine(stream.lag, stream.shards)
    while stream.alive and not stopping.is_set():
        try:
            events, _ = stream.next_batch()
        except ConnectionFailure as error:
            say(f"tailrace: {in_one_line(error)}; trying again")
            continue
        for event in events:
            write(bytes(event.raw))
        if events:
            sys.stdout.flush()
        stream.commit()
        status.add(len(events))
        metrics.add(len(events))
    status.close()


def target_of(client: MongoClient[dict[str, Any]], namespace: str | None) -> Target:
    """The part of a deployment that a namespace names; all of it without one."""
    if namespace is None:
        return client
    database, dot, collection = namespace.partition(".")
    if not database or (dot and not collection):
        raise OptionError(
            f"--namespace {namespace!r} is neither a database nor db.collection",
            option="--namespace",
        )
    return client[database][collection] if collection else client[database]


def stream_options(words: list[str]) -> dict[str, Any]:
    """The stage's options from ``name=value`` words."""
    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise OptionError(f"--option {word!r} is not name=value", option="--option")
        if name in WATCH_PARAMETERS:
            raise OptionError(f"--option {name} is no option of $changeStream", option="--option")
        options[name] = json_value_or_text(value)
    return options


def start_of(text: str) -> dict[str, Any]:
    """Where ``--from`` says to start, as the stream's arguments."""
    if text.strip().lower() == NOW:
        return {}
    if text.lstrip().startswith("{") or _HEX.fullmatch(text.strip()):
        return {"start_after": token_document("--from", text)}
    time: Timestamp | None = cluster_time("--from", text)
    return {"start_at_operation_time": time}
