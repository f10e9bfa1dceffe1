"""Every official case in the unified format that is about change streams."""

from __future__ import annotations

from tests.support.pymongo_source import unified_file
from tests.support.unified import Case, cases

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
OLDEST_SERVER = "6.0.5"
"""The oldest server that the tests run on."""


def official_cases() -> list[Case]:
    """All of them, in the order of the files."""
    return [
        case
        for folder, names in FILES.items()
        for name in names
        for case in cases(name, unified_file(folder, name))
    ]
