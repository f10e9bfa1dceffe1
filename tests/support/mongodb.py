"""MongoDB for tests: one shared replica set for each worker, and special ones on demand.

``mongodb`` is started when the first test asks for it (one node, test commands on, a
no-op every second) and serves the whole session: a test keeps to its own database
(``database``), leaves no fail point behind, and neither kills it nor steps it down.
A test that must do such things starts its own set with ``start_replica_set``.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from tailrace.embedded import ReplicaSet
from tailrace.embedded.binaries import mongod
from tailrace.errors import MissingServer


def _is_under_wine() -> bool:
    with contextlib.suppress(MissingServer):
        return mongod().wine
    return False  # no server at all: a test that needs one says so


WINE = _is_under_wine()
TLS = not WINE
"""Whether this build has TLS: Wine cannot make the certificate chains that mongod asks for."""
RESHARDS = not WINE
"""Whether this build reshards: under Wine the recipient ends by an access violation, often."""


@pytest.fixture(scope="session")
def mongodb() -> Iterator[ReplicaSet]:
    """The replica set that a worker's tests share."""
    with ReplicaSet(noop_interval_s=1) as replica_set:
        yield replica_set


@pytest.fixture(scope="session")
def mongodb_client(mongodb: ReplicaSet) -> MongoClient[dict[str, Any]]:
    """The client of the shared set that tests share."""
    return mongodb.client()


@pytest.fixture
def database_name(mongodb_client: MongoClient[dict[str, Any]]) -> Iterator[str]:
    """A database name that nothing else uses; dropped after the test."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield name
    mongodb_client.drop_database(name)


@pytest.fixture
def database(
    mongodb_client: MongoClient[dict[str, Any]], database_name: str
) -> Database[dict[str, Any]]:
    """A database of the shared set that only this test uses."""
    return mongodb_client[database_name]


@pytest.fixture
def start_replica_set() -> Iterator[Callable[..., ReplicaSet]]:
    """Start a set of one's own, with the options of ``ReplicaSet``; it ends with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *nodes, **options: stack.enter_context(ReplicaSet(*nodes, **options))
