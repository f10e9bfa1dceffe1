"""``tailrace watch``: the change events of a live replica set, from its oplog.

Events go to standard output, a batch at a time; a status line goes to standard error
when that is a terminal. With ``--state`` the place is stored after each batch that
was written out: a run that was killed repeats its last batch at most, and loses
nothing. SIGINT and SIGTERM end the command cleanly, with status 0, as does an
invalidate; 2 is bad usage, 3 an error that the server would raise.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from bson.timestamp import Timestamp
from pymongo import MongoClient
from pymongo.errors import ConfigurationError, PyMongoError

from tailrace.cli.output import (
    Format,
    FormatOption,
    NamespaceOption,
    RelaxedOption,
    errors_in_one_line,
    event_writer,
    say,
)
from tailrace.cli.state import StateFile
from tailrace.cli.status import StatusLine
from tailrace.cli.values import cluster_time, json_array, json_value_or_text, token_document
from tailrace.engine import OplogStream, open_oplog
from tailrace.errors import OptionError, SourceLost

AWAIT_MS = 500
"""How long a signal may have to wait for a batch that does not come."""
NOW = "now"
_HEX = re.compile(r"[0-9a-fA-F]{18,}")
"""What cannot be a time: a token has at least its cluster time."""


def watch(
    uri: Annotated[str, typer.Argument(help="The replica set's connection string.")],
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
    form: FormatOption = Format.JSONL,
    relaxed: RelaxedOption = False,
) -> None:
    """Print the change events of a replica set as they happen."""
    with errors_in_one_line():
        options = stream_options(option or [])
        starts = start_of(start)
        file = StateFile(state, namespace) if state is not None else None
        saved = file.load() if file is not None else None
        if saved is not None:
            starts = {"start_after": saved}
        with (
            _client(uri) as client,
            open_oplog(
                client,
                namespace,
                options=options,
                pipeline=json_array("--pipeline", pipeline),
                max_await_ms=AWAIT_MS,
                **starts,
            ) as stream,
        ):
            _run(stream, event_writer(form, relaxed=relaxed), file)


def _run(stream: OplogStream, write: Callable[[bytes], None], file: StateFile | None) -> None:
    stopping = _until_signalled()
    status = StatusLine(stream)
    if file is not None:
        # Where "now" was: a run that is killed before its first event must not lose it.
        file.save(stream.resume_token)
    while stream.alive and not stopping.is_set():
        try:
            events, token = stream.next_batch()
        except SourceLost as error:
            say(f"tailrace: {' '.join(str(error).split())}; trying again")
            continue
        for event in events:
            write(event)
        if events:
            sys.stdout.flush()
        if file is not None:
            file.save(token)
        status.add(len(events))
    status.close()


def stream_options(words: list[str]) -> dict[str, Any]:
    """The stage's options from ``name=value`` words."""
    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise OptionError(f"--option {word!r} is not name=value", option="--option")
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


def _client(uri: str) -> MongoClient[dict[str, Any]]:
    try:
        return MongoClient(uri, appname="tailrace")
    except (PyMongoError, ConfigurationError, ValueError) as error:
        raise OptionError(f"URI: {_without_secrets(str(error), uri)}", option="URI") from None


def _without_secrets(message: str, uri: str) -> str:
    """What PyMongo says of a connection string, unless it repeats a part of the login."""
    login = uri.partition("://")[2].rpartition("@")[0]
    secrets = [part for part in re.split(r"[:@/]", login) if part]
    if any(secret in message for secret in secrets):
        return "cannot be used: percent-encode the user and the password"
    return message


def _until_signalled() -> threading.Event:
    """Set by the first SIGINT or SIGTERM; a second one ends the process as usual."""
    stopping = threading.Event()

    def stop(number: int, _frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return stopping
