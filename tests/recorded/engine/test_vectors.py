"""What the server's own unit tests and captures say of entries and events, vector by vector."""

from __future__ import annotations

from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions, DatetimeConversion
from tests.support.testdata import from_extended, shared_json

import tailrace
from tailrace.errors import ServerError
from tailrace.event.event import Event
from tailrace.event.shape import parse_version
from tailrace.event.updates import describe_diff
from tailrace.oplog.entry import Entry
from tailrace.stage.merged import Stage
from tailrace.stage.options import Caller, parse_options
from tailrace.stage.resume import CheckResumability, EnsureToken, check_history
from tailrace.token import ResumeToken, event_token

NEWEST = "8.2"
"""Most vectors are of the newest release."""
AS_STORED = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)


def vectors(file: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = shared_json(f"vectors/{file}.json")["vectors"]
    return rows


def in_order(document: dict[str, Any]) -> bytes:
    """BSON with its fields as they stand; PyMongo puts ``_id`` first."""
    body = b"".join(bson.encode({name: value})[4:-1] for name, value in document.items())
    return (len(body) + 5).to_bytes(4, "little") + body + b"\x00"


def encoded(rows: list[Any]) -> bytes:
    return b"".join(in_order(from_extended(row)) for row in rows)


def namespace_of(scope: dict[str, Any]) -> str | None:
    parts = [scope[name] for name in ("db", "coll") if scope.get(name)]
    return None if scope["type"] == "cluster" else ".".join(parts)


def parameters_of(row: dict[str, Any]) -> dict[str, Any]:
    asked = {"changeStreamsEmitFromMigrate": "changeStreamsEmitFromMigrate" in row.get("since", "")}
    name = "featureFlagEndOfTransactionChangeEvent"
    return {**asked, name: bool(row.get(name))}


def run(row: dict[str, Any], version: str) -> tuple[list[bytes], int]:
    """The events of a vector's entries, and the code of the error that ended them."""
    events = []
    try:
        for event in tailrace.replay(
            encoded(row["oplog"]),
            namespace=namespace_of(row["scope"]),
            options=from_extended(row["spec"]),
            server_version=version,
            server_parameters=parameters_of(row),
        ):
            events.append(event.raw)
    except ServerError as error:
        return events, error.code
    return events, 0


def in_words(events: list[bytes]) -> str:
    return "\n".join(str(bson.decode(event, AS_STORED)) for event in events)


def check(row: dict[str, Any], version: str) -> None:
    events, code = run(row, version)
    wanted = [in_order(from_extended(event)) for event in row["events"]]
    assert code == row.get("errorCode", 0), row["name"]
    assert events == wanted, f"{row['name']}\n{in_words(events)}\nwanted\n{in_words(wanted)}"


@pytest.mark.parametrize("file", ["oplog_to_events", "transactions"])
def test_every_vector_of_entries_gives_its_events(file: str) -> None:
    for row in vectors(file):
        check(row, NEWEST)


def test_every_captured_event_is_made_of_its_entry() -> None:
    for row in vectors("captured_pairs"):
        options = {"showExpandedEvents": True} if "showExpandedEvents" in row["server"] else {}
        version = "4.2" if "4.2" in row["server"] else "7.0"
        cluster = {"type": "cluster"}
        pair = {"oplog": [row["oplog"]], "events": [row["event"]], "scope": cluster}
        check({"name": row["name"], "spec": options, **pair}, version)


def test_every_diff_is_described_as_the_server_does() -> None:
    for row in vectors("update_diffs"):
        diff = in_order(from_extended(row["diff"]))
        described = bson.decode(describe_diff(diff, 0, with_paths=True), AS_STORED)
        pairs = row.get("updatedFieldsPairs")
        if pairs is None:
            assert described["updatedFields"] == from_extended(row["updatedFields"]), row["name"]
        for name in ("removedFields", "truncatedArrays", "disambiguatedPaths"):
            assert described[name] == from_extended(row[name]), row["name"]


def seen(entry: dict[str, Any]) -> Event:
    """An event with nothing but its token and its time."""
    time = from_extended(entry["ts"])
    raw = bson.encode({"ts": time, "op": "n", "ns": ""})
    token = entry["eventToken"]["_data"].encode()
    return Event(b"insert", b"", token, b"", Entry(raw), 0)


def resumed(row: dict[str, Any]) -> list[int]:
    client = ResumeToken.parse(row["clientToken"])
    start = client.cluster_time
    ensures = row["stage"] == "ensureResumeTokenPresent"
    if not ensures:
        first = {**row["oplog"][0], **row.get("firstEntry", {"op": "n", "o": {}}), "ns": ""}
        check_history(bson.encode(from_extended(first)), start)
    events = [seen(entry) for entry in row["oplog"] if entry["matches"]]
    scanned = [event for event in events if event.time >= start]
    if client.is_high_water_mark:
        stage: Stage = iter  # names no event: nothing is swallowed, and no stage is there
    else:
        stage = EnsureToken(client) if ensures else CheckResumability(client)
    places = {id(event): at for at, event in enumerate(events)}
    shift = len(row["oplog"]) - len(events)
    return [places[id(event)] + shift for event in stage(scanned)]


def test_every_resume_finds_its_place_or_fails_with_its_code() -> None:
    for row in vectors("resume_checks"):
        wanted = row["expect"]
        try:
            returned, code = resumed(row), 0
        except ServerError as error:
            returned, code = [], error.code
        assert (returned, code) == (wanted["returned"], wanted.get("error", 0)), row["name"]


def token_of(said: dict[str, Any]) -> str:
    """A token from its parts."""
    parts = from_extended(said)
    time = parts["clusterTime"]
    if parts["tokenType"] == 0:
        return str(ResumeToken.at(time.time << 32 | time.inc, parts["version"]))
    identifier = in_order(parts["eventIdentifier"])
    uuid, index = bytes(parts["uuid"]), parts["txnOpIndex"]
    data, _ = event_token(parts["version"], time.time << 32 | time.inc, index, uuid, identifier)
    return data.decode()


@pytest.mark.parametrize("scope", [None, "unittests", "unittests.change_stream"])
def test_a_token_of_another_version_is_kept_until_it_was_passed(scope: str | None) -> None:
    for row in vectors("token_version_on_resume"):
        uuid = row["expectTokens"][0]["uuid"]
        written = {"op": "u", "ns": "unittests.change_stream", "ui": uuid, "wall": {"$date": 0}}
        change = {"o": {"$v": 2, "diff": {"u": {"z": 1}}}}
        log = encoded([{**written, **change, **entry} for entry in row["oplogUpdates"]])
        events = tailrace.replay(
            log,
            namespace=scope,
            resume_after={"_data": token_of(row["resumeAfter"])},
            server_version="7.0",
        )
        tokens = [event["_id"]["_data"] for event in events]
        assert tokens == [token_of(token) for token in row["expectTokens"]], row["name"]


NAMESPACES = {
    "collection": ["unittests.change_stream"],
    "non-admin database": ["unittests"],
    "admin without allChangesForCluster": ["admin"],
    "local or config database": ["local", "config"],
    "system.* collection": ["unittests.system.things"],
    "mongos": ["unittests"],
}
CANNOT = {
    "view": "only a live server knows: tests/live/engine/test_open_oplog",
    "standalone": "has no log to read: tests/unit/engine",
    "matchCollectionUUIDForUpdateLookup": "an option of a release that is not out",
}
"""Vectors of refusals that cannot hold here, and why."""


def test_every_refused_option_is_refused_with_its_code() -> None:
    for row in vectors("spec_errors"):
        if row["scope"] in CANNOT or any(name in CANNOT for name in row["spec"]):
            continue
        spec = from_extended(row["spec"])
        caller = Caller(mongos=row["scope"] == "mongos")
        for namespace in NAMESPACES[row["scope"]]:
            with pytest.raises(ServerError) as refused:
                parse_options(spec, namespace, parse_version("7.0"), caller=caller)
            assert refused.value.code == row["code"], row


@pytest.mark.parametrize(
    "option", ["showExpandedEvents", "showRawUpdateDescription", "showSystemEvents"]
)
def test_the_stable_api_refuses_what_is_not_part_of_it(option: str) -> None:
    strict = Caller(api_strict=True)
    with pytest.raises(ServerError) as refused:
        parse_options({option: True}, None, parse_version("7.0"), caller=strict)
    assert (refused.value.code, refused.value.code_name) == (323, "APIStrictError")
    with pytest.raises(ServerError):
        parse_options({option: False, "bogus": 1}, None, parse_version("7.0"), caller=strict)
