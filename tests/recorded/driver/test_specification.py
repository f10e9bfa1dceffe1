"""Every demand of the two specifications is named in the docs, with a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.support.testdata import REPOSITORY, shared_path

PAGE = REPOSITORY / "docs" / "reference" / "specification.md"
DEMAND = re.compile(r"\b(MUST|SHOULD|SHALL|REQUIRED)\b")
TEST = re.compile(r"`(tests/[\w/.]+)::(\w+)`")
BEGIN, END = "--------\nGuidance", "Backwards Compatibility\n===="


def rows() -> list[tuple[str, str, str]]:
    lines = PAGE.read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines if " | " in line]
    return [(row[0].removeprefix("| "), row[1], row[2].removesuffix(" |")) for row in cells[1:]]


def demands(version: str) -> list[str]:
    """Every sentence of a specification that demands something."""
    text = shared_path(f"reference/change-streams-{version}.rst").read_text("utf-8")
    text = text[text.index(BEGIN) : text.index(END)]
    text = re.sub(r"\n\s*[*-] ", "\n\n", text)
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = " ".join(paragraph.split())
        found += [said for said in re.split(r"(?<=[.:])\s+(?=[A-Z])", words) if DEMAND.search(said)]
    return found


@pytest.mark.parametrize(("version", "fewest"), [("1.5.1", 39), ("1.6.0", 65)])
def test_every_demand_is_in_the_table(version: str, fewest: int) -> None:
    quotes = [words for words, versions, _ in rows() if version in versions]
    sentences = demands(version)
    assert len(sentences) >= fewest
    assert not [said for said in sentences if not any(quote in said for quote in quotes)]


@pytest.mark.parametrize("version", ["1.5.1", "1.6.0"])
def test_the_table_quotes_nothing_that_is_not_said(version: str) -> None:
    text = shared_path(f"reference/change-streams-{version}.rst").read_text("utf-8")
    said = " ".join(text.split())
    assert not [words for words, versions, _ in rows() if version in versions and words not in said]


def test_every_test_of_the_table_exists() -> None:
    named = {found for _, _, shown in rows() for found in TEST.findall(shown)}
    assert len(named) > 20
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if name not in functions(REPOSITORY / path)
    ]
    assert not missing


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
