"""Where each official case ran: one line of JSON for each, when somebody wants to know.

``TAILRACE_CONFORMANCE`` names the file that the lines are appended to; ``make
conformance`` makes a page of them. A module whose tests are prose tests says so with
``PROSE``: what they ran on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Record: TypeAlias = Callable[[str, str, str], None]
VARIABLE = "TAILRACE_CONFORMANCE"
PASSED = pytest.StashKey[bool]()
PROSE = "prose"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if call.when == "call":
        item.stash[PASSED] = report.outcome == "passed"
    return report


@pytest.fixture
def record() -> Record:
    """Remember that a case of a suite ran somewhere, and held."""
    path = os.environ.get(VARIABLE)

    def write(suite: str, case: str, where: str) -> None:
        if path:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"suite": suite, "case": case, "where": where}) + "\n")

    return write


@pytest.fixture(autouse=True)
def prose_is_recorded(request: pytest.FixtureRequest) -> Iterator[None]:
    """A prose test that held is remembered by its name."""
    where = getattr(request.module, "PROSE", None)
    if where is None or not os.environ.get(VARIABLE):
        yield
        return
    for name in ("mongodb", "three"):
        if name in request.fixturenames:
            where = request.getfixturevalue(name).version
    write = request.getfixturevalue("record")
    yield
    if request.node.stash.get(PASSED, False):
        words = request.node.originalname.removeprefix("test_").replace("_", " ")
        profile = getattr(request.node, "callspec", None)
        profile = profile.params.get("profile") if profile else None
        write(PROSE, f"{words} ({profile})" if profile else words, where)
