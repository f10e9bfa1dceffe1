"""PostgreSQL for tests: one shared server for each worker, and special ones on demand.

``postgres`` serves the whole session: a test keeps to its own database
(``postgres_database``) and neither kills the server nor changes its settings. A test
that must do such things starts its own with ``start_postgres``.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest
from tests.support.waiting import eventually

from tailrace.embedded import Postgres

END_READERS = (
    "select count(pg_terminate_backend(active_pid)) = 0 from pg_replication_slots"
    " where database = %s and active"
)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server that a worker's tests share."""
    with Postgres() as server:
        yield server


@pytest.fixture
def postgres_database(postgres: Postgres) -> Iterator[str]:
    """The connection string of a database that only this test uses; dropped with its slots."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.uri, autocommit=True) as admin:
        admin.execute(f"create database {name}")
        yield postgres.database_uri(name)

        def no_reader() -> bool:
            (ended,) = admin.execute(END_READERS, [name]).fetchone() or (False,)
            return bool(ended)

        eventually(no_reader, "no slot of the test is read")
        admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def start_postgres() -> Iterator[Callable[..., Postgres]]:
    """Start a server of one's own, with the options of ``Postgres``; it ends with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(Postgres(**options))
