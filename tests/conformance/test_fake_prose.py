"""Prose tests for servers that cannot be had, most of them historic, each under its profile."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Timestamp
from pymongo.errors import OperationFailure
from tests.support.fake_deployment import FailPoint, FakeDeployment, FakeTarget, token

PROSE = "fake"
OLD = (4, 0, 5)
"""Knows times, but no post-batch tokens."""
PROFILES = ("1.5.1", "1.6.0", "current")


def things(deployment: FakeDeployment) -> FakeTarget:
    return FakeTarget(deployment)["shop"]["things"]


@pytest.mark.parametrize("code", [11601, 136, 237])
@pytest.mark.parametrize("profile", ["1.5.1", "1.6.0"])
def test_5_three_codes_are_never_resumed(profile: str, code: int) -> None:
    deployment = FakeDeployment()
    deployment.fail_points.append(FailPoint(("getMore",), 1, code))
    stream = things(deployment).watch(resume_policy=profile)
    with pytest.raises(OperationFailure) as raised:
        stream.try_next()
    assert raised.value.code == code
    assert not stream.alive
    assert deployment.names().count("aggregate") == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_9_a_resume_without_a_token_starts_at_the_first_reply(profile: str) -> None:
    deployment = FakeDeployment(OLD)
    stream = things(deployment).watch(resume_policy=profile)
    opened = Timestamp(deployment.time, 1)
    things(deployment).insert_one({"_id": 1})
    deployment.fail_points.append(FailPoint(("getMore",), 1))
    assert stream.next()["documentKey"] == {"_id": 1}
    _, resumed = deployment.stages()
    assert resumed["startAtOperationTime"] == opened
    assert not {"resumeAfter", "startAfter"} & set(resumed)


@pytest.mark.parametrize("profile", PROFILES)
def test_10_a_stream_survives_that_its_cursor_is_killed(profile: str) -> None:
    deployment = FakeDeployment()
    stream = things(deployment).watch(resume_policy=profile)
    things(deployment).insert_one({"_id": 1})
    stream.next()
    deployment.cursors.clear()
    things(deployment).insert_one({"_id": 2})
    assert stream.next()["documentKey"] == {"_id": 2}


STARTS: list[dict[str, Any]] = [
    {"start_after": token(1)},
    {"resume_after": token(1)},
    {},
]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("start", STARTS)
def test_12_without_batch_tokens_the_last_event_shows_else_the_start(
    profile: str, start: dict[str, Any]
) -> None:
    deployment = FakeDeployment(OLD)
    stream = things(deployment).watch(resume_policy=profile, **start)
    assert stream.try_next() is None
    assert stream.resume_token == next(iter(start.values()), None)
    things(deployment).insert_one({})
    event = stream.next()
    assert stream.resume_token == event["_id"]
    assert stream.try_next() is None
    assert stream.resume_token == event["_id"]


@pytest.mark.parametrize("version", [OLD, (4, 2, 0)], ids=["16", "15"])
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("start", STARTS)
def test_15_and_16_a_fetched_batch_changes_no_token_before_it_is_read(
    profile: str, start: dict[str, Any], version: tuple[int, ...]
) -> None:
    deployment = FakeDeployment(version)
    stream = things(deployment).watch(resume_policy=profile, batch_size=2, **start)
    things(deployment).insert_one({})
    stream.next()
    before = stream.resume_token
    for _ in range(2):
        things(deployment).insert_one({})
    # As a getMore that has just been executed: fetched, nothing handed out.
    steps = stream._machine._advance()
    with pytest.raises(StopIteration):
        answer = None
        while True:
            answer = deployment.perform(steps.send(answer))
    assert stream.buffered == 2
    assert stream.resume_token == before


def test_17_of_1_6_0_a_resume_sends_start_after_as_resume_after() -> None:
    for profile, used in (("1.6.0", "resumeAfter"), ("current", "startAfter")):
        deployment = FakeDeployment()
        stream = things(deployment).watch(resume_policy=profile, start_after=token(1))
        deployment.fail_points.append(FailPoint(("getMore",), 1))
        stream.try_next()
        assert [name for name in deployment.stages()[1] if name != "fullDocument"] == [used]


def test_19_fragments_are_events_of_their_own() -> None:
    deployment = FakeDeployment()
    stream = things(deployment).watch([{"$changeStreamSplitLargeEvent": {}}])
    ns = {"db": "shop", "coll": "things"}
    for fragment in (1, 2):
        split = {"fragment": fragment, "of": 2}
        deployment.write({"operationType": "update", "ns": ns, "splitEvent": split})
    first = stream.next()
    assert first["splitEvent"] == {"fragment": 1, "of": 2}
    assert stream.resume_token == first["_id"]
    deployment.cursors.clear()
    again = things(deployment).watch(resume_after=first["_id"])
    assert again.next()["splitEvent"] == {"fragment": 2, "of": 2}


def test_2_before_4_2_a_missing_token_is_the_drivers_error() -> None:
    deployment = FakeDeployment(OLD)
    stream = things(deployment).watch([{"$project": {"_id": 0}}])
    things(deployment).insert_one({})
    with pytest.raises(Exception, match="Cannot provide resume functionality") as raised:
        stream.next()
    assert raised.value.option == "pipeline"
    assert not stream.alive
    assert deployment.cursors == {}


def test_the_first_aggregate_of_1_5_1_starts_at_the_last_operation_time() -> None:
    deployment = FakeDeployment()
    time = Timestamp(7, 3)
    for profile, expected in (("1.5.1", {"startAtOperationTime": time}), ("current", {})):
        things(deployment).watch(resume_policy=profile, last_operation_time=time).close()
        stage = deployment.stages()[-1]
        stage.pop("fullDocument", None)
        assert stage == expected


@pytest.mark.parametrize("profile", ["1.5.1", "1.6.0"])
def test_a_stream_that_cannot_go_on_is_not_resumed_for_ever(profile: str) -> None:
    deployment = FakeDeployment()
    deployment.fail_points.append(FailPoint(("getMore",), 10_000, 10334))
    stream = things(deployment).watch(resume_policy=profile)
    with pytest.raises(OperationFailure):
        stream.next()
    assert deployment.names().count("aggregate") < 20
