"""What cannot be read is refused in one clear line, before anything is planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.change_streams import settle
from tests.support.source_query import Query
from tests.support.waiting import eventually

from tailrace.embedded import ReplicaSet
from tailrace.errors import CheckpointError, OptionError, PrivilegeError, SourceLost, TailraceError
from tailrace.spark.source.connection import close_all
from tailrace.spark.source.cuts import Limit
from tailrace.spark.source.offsets import Offset, ShardOffset

pytestmark = pytest.mark.xdist_group("source refusals")

READ_LOCAL = {"role": "read", "db": "local"}
READ_CONFIG = {"role": "read", "db": "config"}


@pytest.fixture(scope="module")
def guarded() -> Iterator[ReplicaSet]:
    with ReplicaSet(auth=True, noop_interval_s=1) as replica_set:
        yield replica_set
        close_all()


def refused(**options: str) -> TailraceError:
    with pytest.raises(TailraceError) as error:
        Query(options)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)
    return error.value


def test_a_source_that_is_not_there_is_lost() -> None:
    found = refused(uri="mongodb://me:secret@127.0.0.1:1/?serverSelectionTimeoutMS=200")
    assert isinstance(found, SourceLost)


def test_a_uri_that_is_none_is_an_option_that_is_wrong() -> None:
    assert isinstance(refused(uri="mongodb://me:secret@host:port/"), OptionError)


@pytest.mark.parametrize(
    ("roles", "grant"), [([], "local"), ([READ_LOCAL], "config.transactions|database config")]
)
def test_a_missing_privilege_is_named_with_its_grant(
    guarded: ReplicaSet, roles: list[Any], grant: str
) -> None:
    login = guarded.add_user(f"user{len(roles)}", *roles)
    with pytest.raises(PrivilegeError, match=grant):
        Query({"uri": guarded.uri_as(login)})


def test_the_two_grants_are_enough(guarded: ReplicaSet) -> None:
    login = guarded.add_user("enough", READ_LOCAL, READ_CONFIG)
    query = Query({"uri": guarded.uri_as(login)})
    guarded.client().shop.one.insert_one({"_id": 1})
    until = settle(guarded.client())
    rows = query.run_to(until.time << 32 | until.inc)
    assert [row["document_key"] is not None for row in rows if row["db"] == "shop"] == [True]


def test_a_start_in_the_future_is_refused(mongodb: ReplicaSet) -> None:
    assert "not reached" in str(refused(uri=mongodb.uri, startAt="2100-01-01"))


@pytest.mark.parametrize("name", ["rs0", "another"])
def test_an_offset_that_was_never_in_the_log_is_refused(mongodb: ReplicaSet, name: str) -> None:
    query = Query({"uri": mongodb.uri})
    cut = Offset.parse(query.at).cut
    elsewhere = (cut >> 32 << 32) - (1 << 30) if name == "rs0" else cut
    shards = {name: ShardOffset(elsewhere, elsewhere)}
    with pytest.raises(CheckpointError, match="another source"):
        query.planner.end(Offset(elsewhere, shards), Limit())


def test_a_query_that_nothing_happens_to_still_moves(mongodb: ReplicaSet) -> None:
    query = Query({"uri": mongodb.uri, "namespaces": "nothing.here"})
    first = Offset.parse(query.at).cut
    eventually(
        lambda: query.step() is not None and Offset.parse(query.at).cut > first + (2 << 32),
        "the offset moves by no-ops",
    )
    assert [rows for _, _, rows in query.batches if rows] == []
    cuts = [Offset.parse(end).cut for _, end, _ in query.batches]
    assert cuts == sorted(cuts)
