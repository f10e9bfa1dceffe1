"""``tailrace replay`` over a recorded log: formats, statuses, and one line for what is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import bson
import pytest
import zstandard
from bson import json_util
from tests.support.command_line import Result, start_tailrace, tailrace_process
from tests.support.command_line import tailrace as run
from tests.support.recordings import load

import tailrace

RECORDING = load("6.0.27", "crud")
OPLOG = RECORDING.file("oplog.bson")
VERSION = ("--server-version", "6.0.27")
EVENTS = [event.raw for event in tailrace.replay(OPLOG, server_version="6.0.27")]


@pytest.fixture
def oplog(tmp_path: Path) -> str:
    path = tmp_path / "oplog.bson"
    path.write_bytes(OPLOG)
    return str(path)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def test_bson_is_the_events_bytes_and_nothing_else(oplog: str) -> None:
    result = run("replay", oplog, *VERSION, "--format", "bson")
    assert (result.status, result.err) == (0, "")
    assert result.out == b"".join(EVENTS)


@pytest.mark.parametrize("relaxed", [(), ("--relaxed",)])
def test_each_json_line_is_one_event_with_its_types(oplog: str, relaxed: tuple[str, ...]) -> None:
    result = run("replay", oplog, *VERSION, *relaxed)
    assert (result.status, result.err) == (0, "")
    read = [json_util.loads(line) for line in result.out.splitlines()]
    wanted = [bson.decode(event) for event in EVENTS]
    assert [each["_id"] for each in read] == [each["_id"] for each in wanted]
    assert [list(each) for each in read] == [list(each) for each in wanted]
    has_types = b"$numberInt" in result.out
    assert has_types != bool(relaxed)


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"]
)
def test_standard_input_is_an_archive_like_any_file(pack: Any) -> None:
    result = tailrace_process("replay", "-", *VERSION, "--format", "bson", stdin=pack(OPLOG))
    assert (result.status, result.err) == (0, "")
    assert result.out == b"".join(EVENTS)


def test_the_namespace_limits_the_events(oplog: str) -> None:
    result = run("replay", oplog, *VERSION, "--namespace", "rec_crud.other")
    assert (result.status, result.out) == (0, b"")
    result = run("replay", oplog, *VERSION, "--namespace", "rec_crud", "--format", "bson")
    assert result.out == b"".join(EVENTS)


def test_the_options_reach_the_stream(oplog: str) -> None:
    result = run("replay", oplog, *VERSION, "--options", '{"showExpandedEvents": true}')
    assert "create" in {event["operationType"] for event in lines(result)}


def test_a_token_as_hex_or_document_resumes_after_its_event(oplog: str) -> None:
    data = bson.decode(EVENTS[9])["_id"]["_data"]
    for token in (data, json.dumps({"_data": data})):
        for option in ("--resume-after", "--start-after"):
            result = run("replay", oplog, *VERSION, option, token, "--format", "bson")
            assert result.out == b"".join(EVENTS[10:])


def test_a_cluster_time_starts_at_its_event(oplog: str) -> None:
    at = bson.decode(EVENTS[9])["clusterTime"]
    for time in (f"Timestamp({at.time}, {at.inc})", f"{at.time},{at.inc}"):
        result = run(
            "replay", oplog, *VERSION, "--start-at-operation-time", time, "--format", "bson"
        )
        assert result.out == b"".join(EVENTS[9:])


def test_an_invalidate_ends_the_stream_with_status_0() -> None:
    log = load("6.0.27", "ddl").file("oplog.bson")
    result = run("replay", "-", *VERSION, "--namespace", "rec_ddl.target", stdin=log)
    assert result.status == 0
    assert lines(result)[-1]["operationType"] == "invalidate"


def test_an_error_of_the_server_is_status_3_with_its_code(oplog: str) -> None:
    result = run("replay", oplog, *VERSION, "--start-at-operation-time", "1,1")
    assert result.status == 3
    assert not result.out
    assert "ChangeStreamHistoryLost, code 286" in result.error_line


def test_an_archive_that_is_cut_gives_its_events_and_then_status_4(tmp_path: Path) -> None:
    path = tmp_path / "cut.bson"
    path.write_bytes(OPLOG[:-10])
    last = len(OPLOG) - len(RECORDING.documents("oplog.bson")[-1])
    result = run("replay", str(path), *VERSION, "--format", "bson")
    assert result.status == 4
    assert result.out == b"".join(EVENTS)[: len(result.out)]
    assert len(result.out) >= len(b"".join(EVENTS[:-1]))
    assert result.error_line.startswith(f"tailrace: {path}: ")
    assert f"byte {last}" in result.error_line


def test_an_entry_that_is_no_bson_inside_is_status_4_with_its_byte(tmp_path: Path) -> None:
    entries = RECORDING.documents("oplog.bson")
    spoilt = entries[-1][:4] + b"\x7e" + entries[-1][5:]
    path = tmp_path / "spoilt.bson"
    path.write_bytes(b"".join(entries[:-1]) + spoilt)
    result = run("replay", str(path), *VERSION)
    assert result.status == 4
    assert f"byte {len(OPLOG) - len(spoilt)}" in result.error_line


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_packed_archive_that_is_cut_is_status_4(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(pack(OPLOG)[:-20])
    result = run("replay", str(path), *VERSION)
    assert result.status == 4
    assert "cut short" in result.error_line
    assert "byte" in result.error_line


BAD_USAGE = {
    "--options is an array": (("--options", "[1]"), "--options"),
    "--options is no JSON": (("--options", "{bad"), "--options"),
    "--pipeline is an object": (("--pipeline", "{}"), "--pipeline"),
    "--pipeline of numbers": (("--pipeline", "[1]"), "--pipeline"),
    "--namespace without a database": (("--namespace", ".c"), ".c"),
    "--server-version of no release": (("--server-version", "3.6"), "4.2 to 8.x"),
    "--server-version of no form": (("--server-version", "six"), "six"),
    "--server-parameters is an array": (("--server-parameters", "[]"), "--server-parameters"),
    "a time in words": (("--start-at-operation-time", "yesterday"), "yesterday"),
    "a time of zero": (("--start-at-operation-time", "0,0"), "0,0"),
    "a time beyond 32 bits": (("--start-at-operation-time", "4294967296,1"), "4294967296"),
    "a token that is no JSON": (("--resume-after", "{bad"), "--resume-after"),
}


@pytest.mark.parametrize(("words", "named"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_a_bad_value_is_status_2_and_named(oplog: str, words: tuple[str, ...], named: str) -> None:
    result = run("replay", oplog, *words)
    assert result.status == 2
    assert not result.out
    assert named in result.error_line


@pytest.mark.parametrize(
    ("words", "named"),
    [(("--nonsense",), "--nonsense"), (("--format", "xml"), "jsonl"), ((), "file")],
)
def test_bad_words_are_status_2_and_named(words: tuple[str, ...], named: str) -> None:
    result = run("replay", *words) if not words else run("replay", "-", *words)
    assert result.status == 2
    assert not result.out
    assert named in result.err


REFUSED = {
    "an unknown option": ({"showEverything": True}, "showEverything", 40415),
    "an unknown option, with the known": ({"oops": True}, "fullDocumentBeforeChange", 40415),
    "an option of the wrong type": ({"fullDocument": 3}, "expected a string", 14),
    "an unknown choice": ({"fullDocument": "always"}, "updateLookup", 2),
    "a token that is none": ({"resumeAfter": {"_data": "zz"}}, "hex", 9),
}


@pytest.mark.parametrize(("options", "named", "code"), REFUSED.values(), ids=REFUSED)
def test_what_the_server_would_refuse_is_status_3_with_its_code(
    oplog: str, options: dict[str, Any], named: str, code: int
) -> None:
    result = run("replay", oplog, "--options", json.dumps(options))
    assert result.status == 3
    assert named in result.error_line
    assert f"code {code}" in result.error_line


@pytest.mark.parametrize("name", ["nowhere.bson", ""])
def test_an_archive_that_cannot_be_read_is_status_4_and_named(name: str, tmp_path: Path) -> None:
    result = run("replay", str(tmp_path / name))
    assert result.status == 4
    assert str(tmp_path / name) in result.error_line


def test_an_empty_archive_has_no_events_and_status_0() -> None:
    assert run("replay", "-") == Result(0, b"", "")


def test_who_stops_reading_sees_no_complaint(tmp_path: Path) -> None:
    path = tmp_path / "long.bson"
    path.write_bytes(OPLOG * 50)
    process = start_tailrace("replay", str(path), *VERSION)
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""
    assert process.returncode == 1


def test_a_date_that_python_cannot_hold_and_a_string_that_is_no_utf8_are_shown() -> None:
    entries = map(bson.decode, RECORDING.documents("oplog.bson"))
    entry = next(entry for entry in entries if entry["op"] == "i")
    entry["o"] = {"_id": 1, "far": bson.DatetimeMS(1 << 50), "text": "??"}
    raw = bson.encode(entry).replace(b"??", b"\xff\xfe")
    result = run("replay", "-", stdin=raw)
    assert (result.status, result.err) == (0, "")
    document = lines(result)[0]["fullDocument"]
    assert document["far"] == {"$date": {"$numberLong": str(1 << 50)}}
    assert document["text"] == "��"


@pytest.mark.parametrize(
    ("version", "name"), [("6.0", "Location40415"), ("7.0", "IDLUnknownField")]
)
def test_an_unknown_option_has_the_name_that_its_release_gives_it(version: str, name: str) -> None:
    result = run("replay", "-", "--server-version", version, "--options", '{"oops": 1}')
    assert result.status == 3
    assert result.error_line.endswith(f"({name}, code 40415)")


def test_a_clusters_archives_are_merged(tmp_path: Path) -> None:
    cluster = load("6.0.5", "sharded")
    words = ["replay", "--server-version", "6.0.5", "--format", "bson"]
    for shard in cluster.meta["shards"]:
        path = tmp_path / f"{shard}.bson"
        path.write_bytes(cluster.file(f"oplog-{shard}.bson"))
        words += ["--shard", f"{shard}={path}"]
    result = run(*words)
    assert result.status == 0, result.err
    assert result.out == cluster.file("merged-00.bson")


def test_a_shards_file_needs_a_name_and_excludes_another_archive(oplog: str) -> None:
    for words in (["--shard", oplog], [oplog, "--shard", f"s1={oplog}"], []):
        result = run("replay", *words)
        assert result.status == 2
        assert result.error_line.startswith("tailrace: ")
    result = run("replay", "--shard", f"s1={oplog}", "--documents", f"s2={oplog}")
    assert result.status == 2
    assert "s2" in result.error_line
