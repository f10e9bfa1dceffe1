"""What a sync cannot use is one clear line, before Spark starts and anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.command_line import tailrace
from tests.support.standalone import standalone

from tailrace.embedded import ReplicaSet

NOBODY = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def refused(target: Path, uri: str, *words: str) -> str:
    """The line that a refused sync ends with; it leaves nothing behind."""
    result = tailrace("sync", uri, "--to", str(target), *words)
    assert result.status != 0
    assert not target.exists()
    return result.error_line


def test_a_source_that_does_not_answer_is_named(target: Path) -> None:
    assert "the source cannot be read" in refused(target, NOBODY)


def test_a_missing_privilege_comes_with_its_grant(target: Path) -> None:
    with ReplicaSet(auth=True) as replica_set:
        login = replica_set.add_user("app", {"role": "read", "db": "shop"})
        uri = replica_set.uri_as(login)
        line = refused(target, uri)
        assert "grant the role read on the database local" in line
        assert login.password not in line
        result = tailrace("doctor", uri)
        assert result.status == 1
        assert b"grant the role read on the database local" in result.out


def test_grants_are_named_until_none_is_missing(target: Path) -> None:
    roles = [{"role": "readAnyDatabase", "db": "admin"}, {"role": "read", "db": "local"}]
    with ReplicaSet(auth=True) as replica_set:
        oplog_only = replica_set.uri_as(replica_set.add_user("reader", *roles))
        assert "grant the role clusterMonitor on the database admin" in refused(target, oplog_only)
        roles.append({"role": "clusterMonitor", "db": "admin"})
        complete = replica_set.uri_as(replica_set.add_user("follower", *roles))
        result = tailrace("doctor", complete)
        assert result.status == 0, result.out


def test_a_standalone_server_has_no_log(target: Path) -> None:
    with standalone() as (uri, _):
        assert "only supported on replica sets" in refused(target, uri)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--option", "maxEventsPerBach=5"], "maxEventsPerBatch"),
        (["--option", "fullDocument=updateLookup"], "updateLookup"),
        (["--option", "nonsense"], "name=value"),
        (["--namespaces", "shop"], "database.collection"),
        (["--interval", "soon"], "length of time"),
        (["--drop-fields", "_id"], "_id"),
        (["--conf", "spark"], "name=value"),
    ],
)
def test_a_malformed_option_is_named(target: Path, words: list[str], said: str) -> None:
    assert said in refused(target, NOBODY, *words)


def test_a_uri_that_is_none_is_refused_without_its_password(target: Path) -> None:
    line = refused(target, "mongodb://user:p@ss:word@host:x/")
    assert "word" not in line


def test_the_doctor_finds_a_sound_deployment_sound(mongodb: ReplicaSet) -> None:
    result = tailrace("doctor", mongodb.uri)
    assert result.status == 0, result.out
    names = [line.split()[1] for line in result.out.decode().splitlines()]
    assert names[:3] == ["tailrace", "version", "topology"]
    assert {"oplog", "collections", "java", "spark"} <= set(names)


def test_without_java_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for words in (["demo"], ["sync", NOBODY, "--to", str(tmp_path / "lake")]):
        result = tailrace(*words)
        assert (result.status, result.out) == (2, b"")
        assert "openjdk-17" in result.error_line
