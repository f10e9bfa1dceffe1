"""``tailrace dev up``: one line that connects, and nothing left of it afterwards."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable

from pymongo import MongoClient
from pymongo.errors import AutoReconnect
from tests.support.dev_servers import DevServer
from tests.support.waiting import eventually
from typer.testing import CliRunner

from tailrace.cli.app import app
from tailrace.embedded import ReplicaSet

DevUp = Callable[..., DevServer]


def test_the_printed_uri_takes_a_write(dev_up: DevUp) -> None:
    server = dev_up("mongodb")
    with MongoClient(server.uri) as client:
        assert client.test.things.insert_one({"_id": 1}).acknowledged
    assert "MongoDB" in server.said
    assert len(server.pids) == 1


def test_a_signal_ends_it_in_order_and_leaves_nothing(dev_up: DevUp) -> None:
    server = dev_up("mongodb")
    assert server.end(signal.SIGTERM) == (0, b"")
    assert server.traces() == []


def test_nothing_is_left_after_a_kill(dev_up: DevUp) -> None:
    server = dev_up("mongodb")
    assert server.traces()
    server.end(signal.SIGKILL)
    eventually(lambda: not server.traces(), "server and folder gone")


def test_it_ends_with_an_error_when_its_server_does(dev_up: DevUp) -> None:
    server = dev_up("mongodb")
    with MongoClient(server.uri) as client, contextlib.suppress(AutoReconnect):
        client.admin.command("shutdown", force=True)
    assert server.process.wait(60) == 2
    assert server.said.splitlines()[-1] == "tailrace: the server ended by itself"
    assert server.traces() == []


def test_a_taken_port_is_refused_in_one_line(mongodb: ReplicaSet) -> None:
    port = mongodb.nodes[0].port
    result = CliRunner().invoke(app, ["dev", "up", "mongodb", "--port", str(port)])
    assert result.exit_code == 2
    assert result.stderr == f"tailrace: port {port} is taken\n"
