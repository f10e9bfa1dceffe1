"""Where each official case ran: one line of JSON for each, when somebody wants to know.

``TAILRACE_CONFORMANCE`` names the file that the lines are appended to; ``make
conformance`` makes a page of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TypeAlias

import pytest

Record: TypeAlias = Callable[[str, str, str], None]
VARIABLE = "TAILRACE_CONFORMANCE"


@pytest.fixture
def record() -> Record:
    """Remember that a case of a suite ran somewhere, and held."""
    path = os.environ.get(VARIABLE)

    def write(suite: str, case: str, where: str) -> None:
        if path:
            with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(json.dumps({"suite": suite, "case": case, "where": where}) + "\n")

    return write
