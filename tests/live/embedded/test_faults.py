"""Faults of a set of three: each does what it says, and can be made good again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient, WriteConcern
from pymongo.errors import ConnectionFailure, WriteConcernError
from tests.support.mongodb import TLS
from tests.support.waiting import eventually

from tailrace.embedded import Node, ReplicaSet
from tailrace.errors import OptionError

pytestmark = pytest.mark.xdist_group("faults")

ALONE = WriteConcern(1)
TOGETHER = WriteConcern("majority", wtimeout=20_000)


@pytest.fixture(scope="module")
def three() -> Iterator[ReplicaSet]:
    """A set of three whose members can be cut off."""
    with ReplicaSet(3, partitionable=True, noop_interval_s=1) as replica_set:
        yield replica_set


@pytest.fixture(autouse=True)
def whole_again(three: ReplicaSet) -> Iterator[None]:
    """Each test finds a primary, two secondaries, and nothing written."""
    yield
    three.await_members()
    three.client().drop_database("test")
    three.await_caught_up()


def write(node: Node, key: str, concern: WriteConcern = TOGETHER) -> None:
    node.client.test.get_collection("writes", write_concern=concern).insert_one({"_id": key})


def written(node: Node) -> list[str]:
    with node.direct(readPreference="secondaryPreferred") as client:
        return sorted(document["_id"] for document in client.test.writes.find())


def others(three: ReplicaSet, node: Node) -> list[Node]:
    return [other for other in three.nodes if other is not node]


def test_what_a_cut_off_primary_took_is_rolled_back(three: ReplicaSet) -> None:
    old = three.primary()
    write(old, "before")
    three.cut_off(old)
    write(old, "lost", ALONE)
    assert old.hello()["isWritablePrimary"]
    new = three.primary()
    assert new is not old
    write(new, "kept")
    assert written(old) == ["before", "lost"]
    three.heal(old)
    assert written(old) == ["before", "kept"]
    assert old in three.secondaries()
    assert written(new) == ["before", "kept"]


def test_a_cut_off_primary_has_no_majority(three: ReplicaSet) -> None:
    old = three.primary()
    three.cut_off(old)
    with pytest.raises(WriteConcernError):
        write(old, "alone", WriteConcern("majority", wtimeout=300))
    three.heal(old)


def test_clients_reach_a_cut_off_node_at_its_public_address(three: ReplicaSet) -> None:
    node = three.primary()
    three.cut_off(node)
    uri = f"mongodb://{node.address}/?directConnection=true"
    with MongoClient[dict[str, Any]](uri) as client:
        assert client.admin.command("hello")["me"] == node.address
    three.heal(node)


def test_a_cut_off_secondary_stays_behind_until_it_is_healed(three: ReplicaSet) -> None:
    primary = three.primary()
    behind, beside = three.secondaries()
    three.cut_off(behind)
    assert three.primary() is primary
    write(primary, "unseen")
    eventually(lambda: written(beside) == ["unseen"], "the other secondary follows")
    assert written(behind) == []
    three.heal(behind)
    assert written(behind) == ["unseen"]


def test_a_step_down_hands_over_to_another(three: ReplicaSet) -> None:
    old = three.primary()
    new = three.step_down(seconds=5)
    assert new is not old
    write(new, "a")


def test_the_node_that_steps_up_is_the_primary(three: ReplicaSet) -> None:
    wanted = three.secondaries()[0]
    three.step_up(wanted)
    assert three.primary() is wanted


def test_a_majority_write_survives_the_kill_of_its_primary(three: ReplicaSet) -> None:
    old = three.primary()
    write(old, "survives")
    three.kill(old)
    three.step_up(others(three, old)[0])
    assert written(three.primary()) == ["survives"]
    three.restart(old)
    assert written(old) == ["survives"]


def test_a_frozen_node_is_silent_until_it_thaws(three: ReplicaSet) -> None:
    node = three.secondaries()[0]
    three.freeze(node)
    with (
        node.direct(serverSelectionTimeoutMS=300, connectTimeoutMS=300) as client,
        pytest.raises(ConnectionFailure),
    ):
        client.admin.command("ping")
    write(three.primary(), "without it")
    three.thaw(node)
    three.await_caught_up([node])
    assert written(node) == ["without it"]


def test_only_a_partitionable_set_can_be_cut(mongodb: ReplicaSet) -> None:
    with pytest.raises(OptionError, match="partitionable=True"):
        mongodb.cut_off(mongodb.nodes[0])


@pytest.mark.skipif(not TLS, reason="the Windows build has no TLS under Wine")
def test_encrypted_calls_cannot_be_told_apart() -> None:
    with pytest.raises(OptionError, match="no tls"):
        ReplicaSet(3, partitionable=True, tls=True)
