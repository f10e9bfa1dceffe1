"""The folder of PyMongo's source package: the official test data, and PyMongo's own tests."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.scripts import script


@cache
def pymongo_tests() -> Path:
    """PyMongo's ``test`` folder; fetched when it is not here."""
    folder: Path = script("pymongo_source").source()
    return folder / "test"


@cache
def unified_file(folder: str, name: str) -> Any:
    """One file of official cases in the unified format; do not change it."""
    return json.loads((pymongo_tests() / folder / f"{name}.json").read_text("utf-8"))
