"""What ``replay`` says, when it is called, of arguments that make no sense."""

from __future__ import annotations

import io
from typing import Any

import bson
import pytest

import tailrace
from tailrace.errors import OptionError, UnsupportedSource

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an archive that is a number": ({"archive": 5}, "a path, bytes, or an open binary file"),
    "an archive that is None": ({"archive": None}, "NoneType"),
    "an archive that is a list": ({"archive": [b""]}, "list"),
    "an archive that is open as text": ({"archive": io.StringIO("x")}, "StringIO"),
    "documents that are a number": ({"documents": 5}, "not int"),
    "pre-images that are a number": ({"pre_images": 5}, "not int"),
    "a namespace that is a number": ({"namespace": 5}, "namespace must be a string, not int"),
    "a namespace without a collection": ({"namespace": "db."}, "db.collection"),
    "a namespace that is no UTF-8": ({"namespace": "d\udcffb"}, "db.collection"),
    "a namespace with a NUL": ({"namespace": "d\0b"}, "db.collection"),
    "a time that is a number": ({"start_at_operation_time": 5}, "bson.Timestamp, not int"),
    "options that are no BSON": ({"options": {"fullDocument": object()}}, "written as BSON"),
    "parameters that are a list": ({"server_parameters": [1]}, "server_parameters"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_an_argument_of_the_wrong_kind_is_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as raised:
        tailrace.replay(**{"archive": b"", **arguments})
    assert said in str(raised.value)
    assert raised.value.option


@pytest.mark.parametrize("version", [6.0, None, "6", "6.0.5.1", "six", "\uff16.0", "4.0", "9.0"])
def test_a_version_that_is_not_supported_is_named_with_what_is(version: Any) -> None:
    with pytest.raises(UnsupportedSource) as raised:
        tailrace.replay(b"", server_version=version)
    assert str(version) in str(raised.value)
    assert "4.2 to 8.x" in str(raised.value) or "6.0.5" in str(raised.value)


@pytest.mark.parametrize("version", ["4.2", "6.0", "6.0.5", "6.0.27-rc0", "8.2.12"])
def test_a_version_is_a_release_or_the_last_of_a_series(version: str) -> None:
    assert list(tailrace.replay(b"", server_version=version)) == []


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, io.BytesIO])
def test_an_archive_in_memory_is_taken_in_any_form(form: Any) -> None:
    entry = bson.encode(
        {"op": "n", "ns": "", "o": {}, "ts": bson.Timestamp(1, 1), "wall": bson.DatetimeMS(0)}
    )
    assert list(tailrace.replay(form(entry))) == []


@pytest.mark.parametrize(
    ("start", "beside", "code"),
    [
        ("resumeAfter", "resume_after", 50865),
        ("startAfter", "start_after", 50865),
        ("resumeAfter", "start_after", 50865),
        ("startAtOperationTime", "start_at_operation_time", 40674),
        ("startAtOperationTime", "resume_after", 40674),
    ],
)
def test_a_start_in_the_options_and_one_beside_them_are_two(
    start: str, beside: str, code: int
) -> None:
    token, time = {"_data": "8200000001000000022B0229296E04"}, bson.Timestamp(1, 2)
    inside = time if "Time" in start else token
    outside = time if "time" in beside else token
    with pytest.raises(tailrace.ServerError) as raised:
        tailrace.replay(b"", options={start: inside}, **{beside: outside})
    assert raised.value.code == code
