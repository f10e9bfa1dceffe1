"""A PostgreSQL: ready for logical replication, run by nobody, and gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.support.dev_servers import DevServer
from tests.support.waiting import eventually

from tailrace.embedded import Postgres
from tailrace.embedded.account import NOBODY
from tailrace.embedded.binaries import postgres as installed
from tailrace.embedded.watchdog import alive, state

StartPostgres = Callable[..., Postgres]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a server to another user")


def row(uri: str, statement: str) -> tuple[object, ...]:
    with psycopg.connect(uri, connect_timeout=10) as connection:
        found = connection.execute(statement).fetchone()
        assert found is not None
        return found


def kernel_segment(folder: Path) -> str:
    """The shared memory that the server of this folder has in the kernel, and no other has."""
    segment = (folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]
    assert segment in kernel_segments()
    return segment


def kernel_segments() -> list[str]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()
    return [line.split()[1] for line in lines]


def test_a_slot_decodes_a_transaction(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("create table t (a int primary key)")
        connection.execute(
            "select pg_create_logical_replication_slot('s_' || current_database(), 'pgoutput')"
        )
        connection.execute("create publication p for table t")
        connection.execute("insert into t values (1)")
        changes = connection.execute(
            "select data from pg_logical_slot_peek_binary_changes('s_' || current_database(),"
            " null, null, 'proto_version', '1', 'publication_names', 'p')"
        ).fetchall()
    # Before 15 the transactions that decode to nothing come too, empty.
    assert [bytes(data)[:1] for (data,) in changes][-4:] == [b"B", b"R", b"I", b"C"]


@as_root
def test_the_server_does_not_run_as_root(postgres: Postgres) -> None:
    assert Path(f"/proc/{postgres.process.pid}").stat().st_uid == NOBODY


def test_what_was_committed_survives_a_kill(start_postgres: StartPostgres) -> None:
    server = start_postgres()
    with psycopg.connect(server.uri, autocommit=True) as connection:
        connection.execute("create table t as select 7 as a")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("table t")
    server.restart()
    assert row(server.uri, "table t") == (7,)


def test_a_killed_server_leaves_neither_process_nor_memory_nor_folder() -> None:
    with Postgres() as server:
        pid = server.process.pid
        folder = server.process.log.parent
        segment = kernel_segment(folder)
        with psycopg.connect(server.uri) as connection:
            backend = connection.info.backend_pid
            server.kill()
            assert not alive(backend)
    assert not alive(pid)
    assert not folder.exists()
    assert segment not in kernel_segments()


def test_a_frozen_server_is_silent_until_it_thaws(start_postgres: StartPostgres) -> None:
    server = start_postgres()
    with psycopg.connect(server.uri) as connection:
        server.freeze()
        assert state(connection.info.backend_pid) == "T"
        with pytest.raises(psycopg.OperationalError, match="timeout"):
            psycopg.connect(server.uri, connect_timeout=2)
        server.thaw()
        assert connection.execute("select 1").fetchone() == (1,)
    assert row(server.uri, "select 2") == (2,)


def test_only_the_password_opens_it(start_postgres: StartPostgres) -> None:
    server = start_postgres(auth=True)
    assert server.login is not None
    assert row(server.uri, "select current_user") == ("postgres",)
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(server.uri.replace(server.login.password, "wrong"))
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(server.uri.replace(f":{server.login.password}@", "@"))
    assert server.login.password not in repr(server) + repr(server.login)


def test_settings_win_over_the_defaults(start_postgres: StartPostgres) -> None:
    server = start_postgres(settings={"max_replication_slots": 3})
    assert row(server.uri, "show max_replication_slots") == ("3",)


@as_root
def test_an_installation_that_only_root_reads_runs_from_a_copy(
    tmp_path: Path, start_postgres: StartPostgres
) -> None:
    original = installed()
    private = tmp_path / "private"
    for folder in (original.folder, *original.beside):
        copy = private / folder.relative_to(original.folder.parent.parent)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("include", "doc"))
    private.chmod(0o700)
    named = private / original.folder.relative_to(original.folder.parent.parent)
    server = start_postgres(installation=str(named))
    assert row(server.uri, "show wal_level") == ("logical",)


def test_nothing_is_left_of_tailrace_dev_up_after_a_kill(
    dev_up: Callable[..., DevServer],
) -> None:
    server = dev_up("postgres")
    segment = kernel_segment(server.folders[0])
    assert row(server.uri, "show wal_level") == ("logical",)
    server.end(signal.SIGKILL)
    eventually(lambda: not server.traces(), "server and folder gone")
    assert segment not in kernel_segments()
