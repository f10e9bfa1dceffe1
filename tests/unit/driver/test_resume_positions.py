"""What a resume starts from, case by case of "Resume Process", under each profile."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Timestamp
from tests.support.fake_deployment import FailPoint, FakeDeployment, FakeTarget, token

BATCH_TOKENS = (6, 0, 5)
WITHOUT = (4, 0, 5)
"""Knows times, but sends no post-batch tokens."""
NO_TIMES = (3, 6, 0)
TIME = Timestamp(2, 1)
PROFILES = ("1.5.1", "1.6.0", "current")
START_OPTIONS = {"resumeAfter", "startAfter", "startAtOperationTime"}

CASES: list[tuple[str, tuple[int, ...], dict[str, Any], int, dict[str, Any]]] = [
    # profile, server, options, events taken, what the resume carries
    ("current", BATCH_TOKENS, {}, 0, {"resumeAfter": token(6)}),
    ("1.6.0", BATCH_TOKENS, {}, 0, {"resumeAfter": token(6)}),
    ("1.5.1", BATCH_TOKENS, {}, 0, {"startAtOperationTime": Timestamp(5, 1)}),
    ("current", BATCH_TOKENS, {"start_after": token(5)}, 0, {"startAfter": token(6)}),
    ("1.6.0", BATCH_TOKENS, {"start_after": token(5)}, 0, {"resumeAfter": token(6)}),
    ("1.5.1", BATCH_TOKENS, {"start_after": token(5)}, 0, {"startAfter": token(5)}),
    ("current", WITHOUT, {"start_after": token(5)}, 0, {"startAfter": token(5)}),
    ("1.6.0", WITHOUT, {"start_after": token(5)}, 0, {"resumeAfter": token(5)}),
    *(
        (profile, WITHOUT, {"resume_after": token(5)}, 0, {"resumeAfter": token(5)})
        for profile in PROFILES
    ),
    *(
        (profile, WITHOUT, {"start_at_operation_time": TIME}, 0, {"startAtOperationTime": TIME})
        for profile in PROFILES
    ),
    *((profile, WITHOUT, {}, 0, {"startAtOperationTime": Timestamp(5, 1)}) for profile in PROFILES),
    *((profile, NO_TIMES, {}, 0, {}) for profile in PROFILES),
    *(
        (profile, WITHOUT, start, 1, {"resumeAfter": token(6)})
        for profile in PROFILES
        for start in (
            {},
            {"start_after": token(5)},
            {"resume_after": token(5)},
            {"start_at_operation_time": Timestamp(6, 1)},
        )
    ),
    *(
        (
            profile,
            BATCH_TOKENS,
            {"start_at_operation_time": Timestamp(6, 1)},
            1,
            {"resumeAfter": token(6)},
        )
        for profile in PROFILES
    ),
]


@pytest.mark.parametrize(("profile", "version", "options", "events", "carried"), CASES)
def test_a_resume_carries_what_the_specification_says(
    profile: str,
    version: tuple[int, ...],
    options: dict[str, Any],
    events: int,
    carried: dict[str, Any],
) -> None:
    deployment = FakeDeployment(version)
    deployment.time = 5
    things = FakeTarget(deployment)["shop"]["things"]
    stream = things.watch(resume_policy=profile, batch_size=10, full_document="off", **options)
    for _ in range(events):
        things.insert_one({})
        stream.next()
    if not events:
        deployment.idle()
        stream.try_next()
    deployment.fail_points.append(FailPoint(("getMore",), 1))
    stream.try_next()
    stage = deployment.stages()[-1]
    assert {name: value for name, value in stage.items() if name in START_OPTIONS} == carried
    assert stage["fullDocument"] == "off"


@pytest.mark.parametrize("profile", PROFILES)
def test_the_second_resume_in_a_row_starts_where_the_first_did(profile: str) -> None:
    deployment = FakeDeployment(WITHOUT)
    stream = FakeTarget(deployment)["shop"]["things"].watch(resume_policy=profile)
    deployment.fail_points.append(FailPoint(("getMore",), 2))
    stream.try_next()
    stream.try_next()
    _, first, second = deployment.stages()
    assert first == second


def test_each_helper_sends_its_own_aggregate() -> None:
    deployment = FakeDeployment()
    client = FakeTarget(deployment)
    stage = [{"$match": {"operationType": "insert"}}]
    for target in (client, client["shop"], client["shop"]["things"]):
        target.watch(stage)
    sent = [
        (database, command["aggregate"], command["pipeline"])
        for _, database, command in deployment.commands
    ]
    assert sent == [
        ("admin", 1, [{"$changeStream": {"allChangesForCluster": True}}, *stage]),
        ("shop", 1, [{"$changeStream": {}}, *stage]),
        ("shop", "things", [{"$changeStream": {}}, *stage]),
    ]


def test_a_get_more_names_the_collection_of_the_servers_namespace() -> None:
    deployment = FakeDeployment()
    client = FakeTarget(deployment)
    for target in (client, client["shop"], client["shop"]["things"]):
        target.watch().try_next()
    asked = [
        (database, command["collection"])
        for name, database, command in deployment.commands
        if name == "getMore"
    ]
    assert asked == [("admin", "$cmd.aggregate"), ("shop", "$cmd.aggregate"), ("shop", "things")]


def test_the_wait_is_sent_with_get_more_only() -> None:
    deployment = FakeDeployment()
    FakeTarget(deployment)["shop"].watch(max_await_time_ms=70).try_next()
    (_, _, opening), (_, _, more) = deployment.commands
    assert not {"maxTimeMS", "maxAwaitTimeMS"} & set(opening)
    assert more["maxTimeMS"] == 70


@pytest.mark.parametrize(("version", "sent"), [((4, 2, 0), False), ((4, 4, 0), True)])
def test_a_comment_goes_with_get_more_since_4_4(version: tuple[int, ...], sent: bool) -> None:
    deployment = FakeDeployment(version)
    FakeTarget(deployment)["shop"].watch(comment="why").try_next()
    (_, _, opening), (_, _, more) = deployment.commands
    assert opening["comment"] == "why"
    assert ("comment" in more) is sent
