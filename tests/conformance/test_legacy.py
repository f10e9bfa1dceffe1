"""The official cases of 1.5.1, of 1.6.0 and of the last old format, each under its profile."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo import MongoClient
from tests.support.conformance import Record
from tests.support.legacy import LegacyCase, legacy_cases, run_legacy_live, run_legacy_on_fake
from tests.support.standalone import standalone
from tests.support.testdata import named_cases

from tailrace.embedded import ReplicaSet

CASES = named_cases(legacy_cases)


@pytest.mark.parametrize("case", CASES)
def test_an_old_official_case_holds_on_the_server(
    mongodb: ReplicaSet,
    mongodb_client: MongoClient[dict[str, Any]],
    case: LegacyCase,
    record: Record,
) -> None:
    if not case.admitted(mongodb.version, "replicaset"):
        pytest.skip(f"a replica set of {mongodb.version} is not asked to do this")
    run_legacy_live(case, mongodb.uri, mongodb_client)
    record(case.folder, case.name, mongodb.version)


@pytest.mark.parametrize("case", CASES)
def test_an_old_official_case_holds_on_a_fake_server(case: LegacyCase, record: Record) -> None:
    record(case.folder, case.name, run_legacy_on_fake(case))


def test_the_old_official_cases_for_a_standalone_hold(record: Record) -> None:
    alone = [each for each in legacy_cases() if each.admitted("6.0.5", "single")]
    assert len(alone) == 3
    with standalone() as (uri, client):
        for case in alone:
            run_legacy_live(case, uri, client)
            record(case.folder, case.name, "standalone")
