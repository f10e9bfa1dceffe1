"""The documentation names what exists: files, targets, commands, and what the code says."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from tests.house.sources import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
TARGET = re.compile(r"(?:^    |`)make ([a-z0-9.-]+)", re.MULTILINE)
VERB = re.compile(r"(?:^    |`)tailrace ([a-z]+(?: [a-z]+)?)", re.MULTILINE)
MOST_README_LINES = 50
"""One screen."""


def pages() -> list[object]:
    return [pytest.param(page, id=str(page.relative_to(REPOSITORY))) for page in PAGES]


@cache
def reference() -> ModuleType:
    """The script that writes the reference."""
    spec = importlib.util.spec_from_file_location(
        "reference", REPOSITORY / "scripts" / "reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).resolve().exists()]
    assert not missing


@pytest.mark.parametrize("page", pages())
def test_every_make_target_exists(page: Path) -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z0-9.-]*):", makefile, re.MULTILINE))
    assert set(TARGET.findall(page.read_text("utf-8"))) <= targets


@pytest.mark.parametrize("page", pages())
def test_every_command_exists(page: Path) -> None:
    known = [name.removeprefix("tailrace ") for name in reference().command_names()]
    shown = VERB.findall(page.read_text("utf-8"))
    unknown = [
        words for words in shown if words not in known and words.partition(" ")[0] not in known
    ]
    groups = {name.partition(" ")[0] for name in known}
    assert not [words for words in unknown if words not in groups]


def test_the_reference_is_what_the_code_says() -> None:
    for name, text in reference().pages().items():
        written = (REPOSITORY / "docs" / "reference" / name).read_text("utf-8")
        assert written == text, f"docs/reference/{name} is old: run make reference"


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [REPOSITORY / "README.md", REPOSITORY / "docs" / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = LINK.findall(page.read_text("utf-8"))
        waiting.extend(page.parent / link for link in links if "://" not in link)
    assert set(PAGES) <= reached


def test_the_readme_fits_on_one_screen_and_begins_with_the_two_commands() -> None:
    text = (REPOSITORY / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= MOST_README_LINES
    assert TARGET.findall(text)[:2] == ["demo", "test"]
