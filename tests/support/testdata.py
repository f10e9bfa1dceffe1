"""Test data that lives beside the repository: vectors and reference documents.

It is looked up in the folder that ``TAILRACE_TESTDATA`` names, else in ``../shared``
next to the repository. Without it a test is skipped with a reason; under ``CI`` it
fails, so that a green run never means "nothing was compared".
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from bson import json_util
from bson.binary import UuidRepresentation
from bson.codec_options import DatetimeConversion

EXTENDED = json_util.JSONOptions(
    json_mode=json_util.JSONMode.CANONICAL,
    datetime_conversion=DatetimeConversion.DATETIME_MS,
    uuid_representation=UuidRepresentation.UNSPECIFIED,
)
REPOSITORY = Path(__file__).resolve().parents[2]


def shared_path(relative: str) -> Path:
    """The path of one shared file or folder; skips (fails under CI) when it is not there."""
    named = os.environ.get("TAILRACE_TESTDATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared"
    path = folder / relative
    if not path.exists():
        reason = (
            f"no test data at {path}: set TAILRACE_TESTDATA to the folder that holds {relative}"
        )
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@cache
def _json_text(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def shared_json(relative: str) -> Any:
    """The parsed content of one shared JSON file, read once; do not change it."""
    return _json_text(shared_path(relative))


def from_extended(value: Any) -> Any:
    """Values that were read as plain JSON, as Extended JSON."""
    return json_util.loads(json.dumps(value), json_options=EXTENDED)


def named_cases(read: Callable[[], list[Any]]) -> list[Any]:
    """The parameters of a test for every shared case; one that skips when they are not here."""
    try:
        return [pytest.param(case, id=case.name) for case in read()]
    except pytest.skip.Exception as absent:
        return [pytest.param(None, marks=pytest.mark.skip(reason=str(absent)), id="absent")]
