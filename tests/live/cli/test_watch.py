"""``tailrace watch``: what it prints, where it starts, how it ends and refuses."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.database import Database
from tests.support.change_streams import now, server_stream, settle
from tests.support.waiting import eventually
from tests.support.watching import PROGRAM, Watch
from typer.testing import CliRunner

from tailrace.cli.app import app
from tailrace.embedded import ReplicaSet

Base = Database[dict[str, Any]]
Client = MongoClient[dict[str, Any]]


def test_it_prints_the_servers_events_from_a_time_until_the_invalidate(
    mongodb: ReplicaSet, mongodb_client: Client, database: Base, tmp_path: Path
) -> None:
    start = now(mongodb_client)
    database.things.insert_one({"_id": 1})
    database.things.update_one({"_id": 1}, {"$set": {"a": 2.5}})
    database.things.drop()
    until = settle(mongodb_client)
    namespace = f"{database.name}.things"
    options = {"startAtOperationTime": start, "showExpandedEvents": True}
    theirs = server_stream(mongodb_client, namespace, options, until=until)
    words = ("--namespace", namespace, "--option", "showExpandedEvents=true", "--format", "bson")
    run = Watch(
        mongodb.uri, tmp_path / "out", *words, "--from", f"Timestamp({start.time}, {start.inc})"
    )
    assert run.wait() == 0, run.said
    assert run.output.read_bytes() == b"".join(theirs.events)
    token = bson.decode(theirs.events[1])["_id"]["_data"]
    rest = Watch(mongodb.uri, tmp_path / "rest", *words, "--from", token)
    assert rest.wait() == 0, rest.said
    assert rest.output.read_bytes() == b"".join(theirs.events[2:])


@pytest.mark.parametrize("engine", ["server", "oplog"])
def test_both_engines_print_the_same_events_and_go_on_from_each_others_place(
    mongodb: ReplicaSet, database: Base, tmp_path: Path, engine: str
) -> None:
    state = tmp_path / "state.json"
    words = ("--namespace", f"{database.name}.things", "--state", str(state), "--format", "bson")
    other = {"server": "oplog", "oplog": "server"}[engine]
    written: list[bytes] = []
    for number, name in enumerate((engine, other)):
        run = Watch(mongodb.uri, tmp_path / name, *words, "--engine", name)
        eventually(state.exists, "it is reading")
        database.things.insert_one({"_id": number})
        eventually(lambda run=run: run.output.stat().st_size, "the event is written out")
        assert run.stop() == 0, run.said
        written.append(run.output.read_bytes())
    events = [bson.decode(each) for each in written]
    assert [event["documentKey"]["_id"] for event in events] == [0, 1]
    assert list(events[0]) == list(events[1])


def test_a_terminal_shows_a_status_line(mongodb: ReplicaSet, database: Base) -> None:
    terminal, its_end = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, mongodb.uri, "--namespace", database.name],
        stdout=subprocess.DEVNULL,
        stderr=its_end,
    )
    os.close(its_end)
    shown = ""
    pattern = re.compile(r"[\d,]+ events/s · .+ behind · .+ of the oplog left")

    def found() -> bool:
        nonlocal shown
        shown += os.read(terminal, 4096).decode(errors="replace")
        return pattern.search(shown) is not None

    try:
        eventually(found, "a status line")
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


REFUSED: list[tuple[list[str], int, str]] = [
    (["--from", "yesterday"], 2, "--from: 'yesterday' is neither"),
    (["--option", "fullDocument"], 2, "--option 'fullDocument' is not name=value"),
    (["--option", "nonsense=1"], 3, "nonsense"),
    (["--from", "82" + "0" * 16], 3, "resume token|token"),
    (["--namespace", "things."], 2, "neither a database nor db.collection"),
]


def refused(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["watch", *words])
    assert result.stdout == ""
    return result.exit_code, result.stderr


@pytest.mark.parametrize(("words", "status", "said"), REFUSED)
def test_what_it_cannot_do_is_one_line(
    mongodb: ReplicaSet, words: list[str], status: int, said: str
) -> None:
    ended, line = refused(mongodb.uri, *words)
    assert ended == status
    assert re.search(said, line)
    assert line.count("\n") == 1


def test_a_state_file_of_another_stream_is_refused(mongodb: ReplicaSet, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text('{"format": 1, "namespace": "other", "token": {"_data": "82"}}')
    ended, line = refused(mongodb.uri, "--namespace", "things", "--state", str(state))
    assert ended == 2
    assert "belongs to a stream of other, not of things" in line


@pytest.mark.parametrize(
    "uri",
    [
        "mongodb://user:pass@word@127.0.0.1:1/",
        "mongodb://user:geheim@127.0.0.1:geheim/",
        "mongodb://user:geheim@127.0.0.1:1/?serverSelectionTimeoutMS=200",
    ],
)
def test_a_password_is_never_printed(uri: str) -> None:
    ended, line = refused(uri)
    assert ended in (1, 2)
    assert line.startswith("tailrace: ")
    assert not re.search("geheim|word@", line)
