"""``tailrace watch`` on a set with users and certificates: what it may not do, it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.mongodb import TLS
from tests.support.waiting import eventually
from tests.support.watching import Watch
from typer.testing import CliRunner

from tailrace.cli.app import app
from tailrace.embedded import Login, ReplicaSet

pytestmark = pytest.mark.xdist_group("guarded")

ALL_LOGS = {"role": "read", "db": "local"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[ReplicaSet]:
    with ReplicaSet(auth=True, tls=TLS, noop_interval_s=1) as replica_set:
        yield replica_set


def refused(uri: str, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["watch", uri, *words])
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    return result.exit_code, result.stderr


def test_a_connection_string_with_a_user_and_certificates_is_enough(
    guarded: ReplicaSet, tmp_path: Path
) -> None:
    uri = guarded.uri_as(guarded.add_user("reader", ALL_LOGS))
    state = tmp_path / "state.json"
    run = Watch(uri, tmp_path / "out", "--namespace", "shop", "--state", str(state))
    eventually(state.exists, "it is reading")
    guarded.client().shop.things.insert_one({"_id": 1})
    eventually(run.events, "the event is written out")
    assert run.stop() == 0, run.said


def test_who_may_not_read_the_oplog_gets_the_servers_stream_and_a_word(
    guarded: ReplicaSet, tmp_path: Path
) -> None:
    login = guarded.add_user("customer", {"role": "read", "db": "shop"})
    state = tmp_path / "state.json"
    words = ("--namespace", "shop", "--state", str(state))
    run = Watch(guarded.uri_as(login), tmp_path / "out", *words)
    eventually(state.exists, "it is reading")
    guarded.client().shop.things.insert_one({"_id": 2})
    eventually(run.events, "the event is written out")
    assert run.stop() == 0, run.said
    assert "grant the role read on the database local" in run.said
    assert "reading the server's own change stream" in run.said
    assert login.password not in run.said


def test_a_user_without_the_role_learns_which_it_is(guarded: ReplicaSet) -> None:
    login = guarded.add_user("stranger", {"role": "read", "db": "elsewhere"})
    status, line = refused(guarded.uri_as(login), "--namespace", "shop")
    assert (status, "grant the role read on the database local" in line) == (2, True)
    assert login.password not in line


@pytest.mark.parametrize("who", ["a wrong password", "nobody"])
def test_who_cannot_log_in_learns_it_and_no_secret_is_shown(guarded: ReplicaSet, who: str) -> None:
    wrong = Login("root", "geheim")
    uri = guarded.uri_as(wrong if who == "a wrong password" else None)
    status, line = refused(uri, "--namespace", "shop")
    assert status in (2, 3)
    assert "AuthenticationFailed" in line or "grant" in line
    assert "geheim" not in line
