"""The words of ``tailrace watch``: its options, its status line, its state file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bson
import pytest

from tailrace.cli.state import StateFile
from tailrace.cli.status import span, status_text
from tailrace.cli.watch import start_of, stream_options
from tailrace.errors import OptionError

TOKEN = {"_data": "826AFE9587000000082B0229296E04"}


def test_options_are_json_where_they_can_be_and_words_otherwise() -> None:
    words = ["showExpandedEvents=true", "fullDocument=updateLookup", 'resumeAfter={"_data": "82"}']
    assert stream_options(words) == {
        "showExpandedEvents": True,
        "fullDocument": "updateLookup",
        "resumeAfter": {"_data": "82"},
    }


STARTS: list[tuple[str, dict[str, Any]]] = [
    ("now", {}),
    (TOKEN["_data"], {"start_after": TOKEN}),
    ('{"_data": "82"}', {"start_after": {"_data": "82"}}),
    ("1700000000,7", {"start_at_operation_time": bson.Timestamp(1700000000, 7)}),
    ("2023-11-14T22:13:20Z", {"start_at_operation_time": bson.Timestamp(1700000000, 0)}),
]


@pytest.mark.parametrize(("text", "start"), STARTS)
def test_a_start_is_a_token_a_time_or_now(text: str, start: dict[str, Any]) -> None:
    assert start_of(text) == start


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (7320, "2 h 2 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_a_length_of_time_is_said_in_two_units(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_the_status_line_says_rate_lag_and_window() -> None:
    assert status_text(1234.4, 2, 7320) == (
        "1,234 events/s · 2 s behind · 2 h 2 min of the oplog left"
    )


def test_a_place_is_stored_whole_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "state"
    assert StateFile(path, "shop").load() is None
    token = {**TOKEN, "_typeBits": b"\x40"}
    StateFile(path, "shop").save(token)
    assert StateFile(path, "shop").load() == token
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": 2, "namespace": null, "token": {}}']
)
def test_what_is_no_state_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "state"
    path.write_text(text)
    with pytest.raises(OptionError, match="state"):
        StateFile(path, None).load()


def test_a_place_of_another_stream_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    StateFile(path, "shop").save(TOKEN)
    with pytest.raises(OptionError, match="a stream of shop, not of the whole deployment"):
        StateFile(path, None).load()
