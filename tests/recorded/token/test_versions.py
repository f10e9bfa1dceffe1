"""The version of tokens while a stream goes on after one of another version."""

from __future__ import annotations

import json
from typing import Any

import bson
import pytest
from bson import Binary, json_util
from bson.binary import UUID_SUBTYPE
from tests.support.testdata import shared_json

import tailrace
from tailrace.token import ResumeToken

WALL = bson.DatetimeMS(100_000)
NAMESPACE = "shop.orders"


def token(said: dict[str, Any]) -> ResumeToken:
    """A token from the parts that a vector names."""
    time, identifier = said["clusterTime"], said.get("eventIdentifier")
    return ResumeToken(
        time.time << 32 | time.inc,
        said["version"],
        is_high_water_mark=said["tokenType"] == 0,
        index=said["txnOpIndex"],
        from_invalidate=said["fromInvalidate"],
        uuid=said["uuid"] and bytes(said["uuid"]),
        identifier=identifier and bson.encode(identifier),
    )


def update(said: dict[str, Any], uuid: Binary) -> bytes:
    """The entry of an update of one key at one time."""
    return bson.encode(
        {
            "op": "u",
            "ns": NAMESPACE,
            "ui": uuid,
            "o": {"$v": 2, "diff": {"u": {"y": 1}}},
            "o2": said["o2"],
            "ts": said["ts"],
            "t": bson.Int64(1),
            "v": bson.Int64(2),
            "wall": WALL,
        }
    )


def vectors() -> list[dict[str, Any]]:
    rows = shared_json("vectors/token_version_on_resume.json")["vectors"]
    return json_util.loads(json.dumps(rows))


@pytest.mark.parametrize("at", range(3))
def test_the_clients_version_is_kept_up_to_its_token_and_no_further(at: int) -> None:
    row = vectors()[at]
    wanted = [token(each) for each in row["expectTokens"]]
    assert wanted[0].uuid is not None
    uuid = Binary(wanted[0].uuid, UUID_SUBTYPE)
    archive = b"".join(update(each, uuid) for each in row["oplogUpdates"])
    events = tailrace.replay(
        archive,
        namespace="shop" if row.get("scope") == "database" else NAMESPACE,
        resume_after=token(row["resumeAfter"]).document,
        server_version="7.0",
    )
    assert [event["_id"]["_data"] for event in events] == [str(each) for each in wanted]
