"""A replica set of one node: it starts, answers, keeps its data, and is gone."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo.database import Database
from pymongo.errors import OperationFailure

from tailrace.embedded import ReplicaSet


def test_the_shared_set_takes_majority_writes(database: Database[dict[str, Any]]) -> None:
    database.things.insert_one({"_id": 1})
    assert database.things.find_one() == {"_id": 1}


def test_the_shared_set_writes_a_no_op_every_second(mongodb: ReplicaSet) -> None:
    parameters = mongodb.primary().command("getParameter", periodicNoopIntervalSecs=1)
    assert parameters["periodicNoopIntervalSecs"] == 1


def test_a_fail_point_is_on_inside_its_block_only(
    mongodb: ReplicaSet, database: Database[dict[str, Any]]
) -> None:
    with (
        mongodb.fail_point("failCommand", failCommands=["count"], errorCode=11601),
        pytest.raises(OperationFailure) as raised,
    ):
        database.command("count", "things")
    assert raised.value.code == 11601
    assert database.command("count", "things")["n"] == 0
