"""``tailrace demo --events``: a database that is written to, and its change events as they come.

Starts a MongoDB of its own, makes the writes of ``STORY`` one by one, and shows after
each the events that the engine makes of the server's oplog, token and all. In the end
two claims are checked in front of the reader: the server's own change stream says the
same, byte for byte, and a stream that resumes after any token goes on with the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import typer
from bson.codec_options import CodecOptions
from bson.json_util import RELAXED_JSON_OPTIONS, dumps
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from rich.console import Console
from rich.text import Text

from tailrace.cli.output import EXIT_FAILED, errors_in_one_line
from tailrace.embedded import ReplicaSet
from tailrace.engine import OplogStream, open_oplog
from tailrace.errors import SourceLost

DATABASE = "shop"
PATIENCE_S = 10.0
"""How long an event may take to come; they come within milliseconds."""
SHOWN_FIELDS = ("documentKey", "fullDocument", "updateDescription", "txnNumber")

Client = MongoClient[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Write:
    """One write: a collection, the name of its method, and what it is given."""

    collection: str
    method: str
    arguments: tuple[Mapping[str, Any], ...]

    def __str__(self) -> str:
        given = ", ".join(dumps(each) for each in self.arguments)
        return f"{DATABASE}.{self.collection}.{self.method}({given})"

    def run(self, client: Client, session: ClientSession | None = None) -> None:
        """Do it, in a transaction if a session is given."""
        target = client[DATABASE][self.collection]
        getattr(target, self.method)(*self.arguments, session=session)


STORY: tuple[tuple[Write, ...], ...] = (
    (Write("stock", "insert_one", ({"_id": "lamp", "left": 10},)),),
    (Write("orders", "insert_one", ({"_id": 1, "item": "lamp", "count": 2, "tags": ["new"]},)),),
    (
        Write(
            "orders", "update_one", ({"_id": 1}, {"$inc": {"count": 1}, "$push": {"tags": "big"}})
        ),
    ),
    (Write("orders", "replace_one", ({"_id": 1}, {"item": "lamp", "state": "paid"})),),
    (
        Write("orders", "insert_one", ({"_id": 2, "item": "lamp", "count": 5},)),
        Write("stock", "update_one", ({"_id": "lamp"}, {"$inc": {"left": -5}})),
    ),
    (Write("orders", "delete_one", ({"_id": 1},)),),
)
"""The steps; a step of several writes is a transaction. Each write makes one event."""


def show_events() -> None:
    """Write to a MongoDB of its own and show the change events as they come."""
    with errors_in_one_line():
        console = Console(soft_wrap=True, highlight=False)
        replica_set = ReplicaSet()
        console.print("Starting a MongoDB for this demo ...")
        with replica_set:
            console.print(f"MongoDB {replica_set.version} at {replica_set.uri}")
            tell(console, replica_set.client())
        console.print("The server is gone, and its files with it.")


def tell(console: Console, client: Client) -> None:
    """Make the story's writes, show the events, and check the two claims."""
    raw: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)
    with (
        open_oplog(client, DATABASE) as stream,
        client.get_database(DATABASE, raw).watch() as theirs,
    ):
        seen: list[RawBSONDocument] = []
        for writes in STORY:
            _announce(console, writes)
            _make(client, writes)
            for _ in writes:
                seen.append(_next(stream))
                _show(console, seen[-1], len(seen))
        _check_against_server(console, seen, theirs)
    _check_resumption(console, client, seen)


def _next(stream: OplogStream) -> RawBSONDocument:
    deadline = time.monotonic() + PATIENCE_S
    while (event := stream.try_next()) is None:
        if time.monotonic() > deadline:
            raise SourceLost(f"no event within {PATIENCE_S:g} s")
    return event


def _make(client: Client, writes: tuple[Write, ...]) -> None:
    if len(writes) == 1:
        writes[0].run(client)
        return
    with client.start_session() as session, session.start_transaction():
        for write in writes:
            write.run(client, session)


def _announce(console: Console, writes: tuple[Write, ...]) -> None:
    console.print()
    if len(writes) > 1:
        console.print(Text("in one transaction", "bold"))
    for write in writes:
        console.print(Text(f"write  {write}", "bold"))


def _show(console: Console, event: RawBSONDocument, number: int) -> None:
    ns = event["ns"]
    when = event["clusterTime"]
    line = Text(f"event {number}  ", "cyan")
    line.append(f"{event['operationType']} in {ns['db']}.{ns['coll']}", "bold cyan")
    line.append(f" at Timestamp({when.time}, {when.inc})")
    console.print(line)
    for field in SHOWN_FIELDS:
        if field in event:
            value = dumps(event[field], json_options=RELAXED_JSON_OPTIONS)
            console.print(Text(f"    {field}: {value}"))
    console.print(Text(f"    token: {event['_id']['_data']}", "dim"))


def _check_against_server(
    console: Console, seen: list[RawBSONDocument], theirs: Iterator[Any]
) -> None:
    same = sum(our.raw == their.raw for our, their in zip(seen, theirs, strict=False))
    console.print()
    _verdict(
        console,
        same == len(seen),
        f"{same} of {len(seen)} events are the server's own change stream's, byte for byte.",
    )


def _check_resumption(console: Console, client: Client, seen: list[RawBSONDocument]) -> None:
    right = 0
    for at, event in enumerate(seen[:-1], 1):
        with open_oplog(client, DATABASE, resume_after=event["_id"]) as stream:
            again = [_next(stream).raw for _ in seen[at:]]
        right += again == [each.raw for each in seen[at:]]
    _verdict(
        console,
        right == len(seen) - 1,
        f"{right} of {len(seen) - 1} streams that resumed after a token went on with the rest.",
    )


def _verdict(console: Console, good: bool, claim: str) -> None:
    console.print(Text(claim, "green" if good else "bold red"))
    if not good:
        raise typer.Exit(EXIT_FAILED)
