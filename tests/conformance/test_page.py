"""The page that says where each official case ran knows all of them."""

from __future__ import annotations

from tests.support.legacy import legacy_cases
from tests.support.official import official_cases
from tests.support.scripts import SCRIPTS

PAGE = SCRIPTS.parent / "docs" / "reference" / "conformance.md"


def test_the_page_knows_every_case_of_todays_format() -> None:
    text = PAGE.read_text("utf-8")
    missing = [case.name for case in official_cases() if f"| {case.name} |" not in text]
    assert not missing, "run make conformance"


def test_the_page_knows_every_case_of_the_old_format() -> None:
    text = PAGE.read_text("utf-8")
    missing = [case.name for case in legacy_cases() if f"| {case.name} |" not in text]
    assert not missing, "run make conformance"


def test_no_row_of_the_page_ran_nowhere() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert not [row for row in rows if not row.split("|", 2)[2].strip(" |")]
