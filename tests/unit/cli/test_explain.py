"""``tailrace explain`` says where each stage of a pipeline runs, or how a server refuses it."""

from __future__ import annotations

import json

from tests.support.command_line import tailrace


def explained(*words: str) -> list[dict[str, str]]:
    result = tailrace("explain", *words)
    assert result.status == 0
    return [json.loads(line) for line in result.out.splitlines()]


def test_a_stage_that_only_a_server_runs_takes_the_rest_along() -> None:
    match = {"$match": {"operationType": "insert"}}
    week = {"$set": {"week": {"$dateTrunc": {"date": "$wallTime", "unit": "week"}}}}
    shown = explained(json.dumps([match, week, {"$unset": "ns"}]))
    assert [(stage["stage"], stage["runs"]) for stage in shown] == [
        ("$match", "here"),
        ("$set", "server"),
        ("$unset", "server"),
    ]
    assert "$dateTrunc" in shown[1]["because"]


def test_variables_of_let_are_known_to_the_stages() -> None:
    let = json.dumps({"x": {"$add": [1, 2]}})
    assert explained('[{"$set": {"a": "$$x"}}]', "--let", let)[0]["runs"] == "here"


def test_what_a_server_refuses_is_refused_with_its_code() -> None:
    result = tailrace("explain", '[{"$limit": 1}]')
    assert result.status == 3
    assert "IllegalOperation, code 20" in result.error_line


def test_a_release_knows_the_operators_of_its_time() -> None:
    stage = '[{"$set": {"a": {"$getField": "b"}}}]'
    assert explained(stage, "--server-version", "5.0")[0]["runs"] == "here"
    assert "168" in tailrace("explain", stage, "--server-version", "4.4").error_line
