"""The official cases of today in the unified format: on the server, else on a fake one."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo import MongoClient
from tests.support.conformance import Record
from tests.support.fake_runs import run_on_fake
from tests.support.official import OLDEST_SERVER, official_cases
from tests.support.standalone import standalone
from tests.support.unified import Case, admitted, run_case

from tailrace.embedded import ReplicaSet

CASES = official_cases()


def named(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]


@pytest.mark.parametrize("case", named(CASES))
def test_an_official_case_holds_on_the_server(
    mongodb: ReplicaSet, mongodb_client: MongoClient[dict[str, Any]], case: Case, record: Record
) -> None:
    if not admitted(case, mongodb.version, "replicaset"):
        pytest.skip(f"a replica set of {mongodb.version} is not asked to do this")
    run_case(case, mongodb.uri, mongodb_client)
    record("unified", case.name, mongodb.version)


@pytest.mark.parametrize(
    "case", named([case for case in CASES if not admitted(case, OLDEST_SERVER, "replicaset")])
)
def test_an_official_case_for_another_server_holds_on_a_fake_one(
    case: Case, record: Record
) -> None:
    record("unified", case.name, run_on_fake(case))


def test_the_official_case_for_a_standalone_holds(record: Record) -> None:
    (case,) = [
        each
        for each in CASES
        if admitted(each, "6.0.5", "single") and not admitted(each, "6.0.5", "replicaset")
    ]
    with standalone() as (uri, client):
        run_case(case, uri, client)
    record("unified", case.name, "standalone")
