"""The official cases of today in the unified format, against the server that is here."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo import MongoClient
from tests.support.pymongo_source import unified_file
from tests.support.unified import Case, admitted, cases, run_case

from tailrace.embedded import ReplicaSet

CHANGE_STREAMS = "change_streams/unified"
RETRYABLE_READS = "retryable_reads/unified"
FILES = {
    CHANGE_STREAMS: (
        "change-streams",
        "change-streams-clusterTime",
        "change-streams-disambiguatedPaths",
        "change-streams-errors",
        "change-streams-nsType",
        "change-streams-pre_and_post_images",
        "change-streams-resume-allowlist",
        "change-streams-resume-errorLabels",
        "change-streams-showExpandedEvents",
    ),
    RETRYABLE_READS: tuple(
        f"changeStreams-{target}.watch{kind}"
        for target in ("client", "db", "db.coll")
        for kind in ("", "-serverErrors")
    ),
}


CASES = [
    pytest.param(case, id=case.name)
    for folder, names in FILES.items()
    for name in names
    for case in cases(name, unified_file(folder, name))
]


@pytest.mark.parametrize("case", CASES)
def test_an_official_case_holds(
    mongodb: ReplicaSet, mongodb_client: MongoClient[dict[str, Any]], case: Case
) -> None:
    if not admitted(case, mongodb.version, "replicaset"):
        pytest.skip(f"a replica set of {mongodb.version} is not asked to do this")
    run_case(case, mongodb.uri, mongodb_client)
