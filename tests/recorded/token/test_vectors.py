"""Tokens and keys that real servers made: taken apart and put together again, byte for byte."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import bson
import pytest
from bson import Binary
from bson.codec_options import CodecOptions, DatetimeConversion
from tests.support.recordings import load, scenarios
from tests.support.testdata import from_extended, shared_json

from tailrace.errors import BadToken
from tailrace.raw import document, element, spans, string_value
from tailrace.raw.elements import CODE, CODE_SCOPE, STRING
from tailrace.token import ResumeToken, cluster_time
from tailrace.token.keystring import decode_value, encode_value

DATES_AS_THEY_ARE = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
SCOPE = document(element(b"x_scope", STRING, string_value(b"a")))
CODE_TEXT = string_value(b"def_code")
SCOPED = (4 + len(CODE_TEXT) + len(SCOPE)).to_bytes(4, "little") + CODE_TEXT + SCOPE
BY_NAME = {"code": (CODE, string_value(b"abc_code")), "code with scope": (CODE_SCOPE, SCOPED)}
"""Vectors whose value the file writes as a plain string."""


def value_of(row: dict[str, Any]) -> tuple[int, bytes]:
    raw = bson.encode(from_extended({"": row["value"]}))
    kind, start, end = spans(raw)[b""]
    return BY_NAME.get(row["name"], (kind, raw[start:end]))


def test_every_key_vector_holds_in_both_directions() -> None:
    for row in shared_json("vectors/keystring.json")["vectors"]:
        bits = bytes.fromhex(row["typeBits"] or "")
        value = value_of(row)
        assert encode_value(*value) == (bytes.fromhex(row["hex"]), bits), row["name"]
        assert decode_value(bytes.fromhex(row["hex"]), bits) == value, row["name"]


def test_every_collected_token_survives_and_says_what_it_should() -> None:
    for row in shared_json("vectors/resume_tokens.json")["tokens"]:
        given = from_extended(row["token"])
        if row.get("typeBitsStripped"):
            given["_typeBits"] = b64decode(row["typeBitsComputed"])
        token = ResumeToken.parse(given)
        assert token.document == given, row["name"]
        said = from_extended(row["decoded"])
        assert token.timestamp == said["clusterTime"], row["name"]
        assert token.version == said["version"], row["name"]
        identifier = said.get("eventIdentifier")
        made = token.identifier and bson.decode(token.identifier, DATES_AS_THEY_ARE)
        assert made == identifier, row["name"]


def event_ids() -> list[bytes]:
    found = []
    for version, scenario in scenarios():
        recording = load(version, scenario)
        for name in recording.names:
            if name.startswith("stream-") and name.endswith(".bson"):
                for raw in recording.documents(name):
                    _, start, end = spans(raw)[b"_id"]
                    found.append(raw[start:end])
    return found


def test_every_recorded_token_is_made_again_from_its_parts() -> None:
    ids = event_ids()
    assert len(ids) > 5_000
    for raw in set(ids):
        token = ResumeToken.parse(raw)
        assert bson.encode(token.document) == raw


TOLERATED = {
    "lower-case hex": {"_data": "82640000000000000a2b0229296e04"},
    "final 04 byte missing": {"_data": "82640000000000000A2B0229296E"},
    "extra bytes after 04": {"_data": "82640000000000000A2B0229296E04FFFF"},
    "unknown extra fields in the token document": {
        "_data": "82640000000000000A2B0229296E04",
        "more": 1,
    },
    "_typeBits BinData(00)": {
        "_data": "82640000000000000A2B0229296E04",
        "_typeBits": Binary(b"\x00", 0),
    },
}


def test_what_the_server_tolerates_is_read_and_written_in_its_own_form() -> None:
    for name in shared_json("vectors/token_errors.json")["tolerated"]:
        assert str(ResumeToken.parse(TOLERATED[name])) == "82640000000000000A2B0229296E04", name


def test_the_cluster_time_is_read_without_the_rest() -> None:
    vectors = shared_json("vectors/token_errors.json")
    for row in vectors["clusterTimeFastPath"]:
        assert cluster_time(row["hex"].encode()) == row["t"] << 32 | row["i"], row
    for bad in vectors["clusterTimeFastPathInvalid"]:
        with pytest.raises(BadToken):
            cluster_time(bad.encode())


KEY = bson.encode({"_id": 1})
ILLEGAL: dict[str, dict[str, Any]] = {
    "v1 eventIdentifier without uuid": {"version": 1, "identifier": KEY},
    "v2 event without eventIdentifier": {"version": 2, "uuid": bytes(16)},
    "high water mark with txnOpIndex/uuid/eventIdentifier/fromInvalidate": {
        "version": 2,
        "is_high_water_mark": True,
        "index": 1,
    },
    "fragmentNum with version < 2": {
        "version": 1,
        "uuid": bytes(16),
        "identifier": KEY,
        "fragment": 0,
    },
}


def test_what_no_token_may_hold_is_refused_with_the_servers_codes() -> None:
    for row in shared_json("vectors/token_errors.json")["encode"]:
        with pytest.raises(BadToken) as raised:
            ResumeToken(1 << 32, **ILLEGAL[row["case"]])
        assert raised.value.code == row["code"], row


ERRORS = {
    "version 3": "82640000000000000A2B0604",
    "tokenType 5": "82640000000000000A2B022B0A04",
    "negative txnOpIndex": "82640000000000000A2B022C010027FD04",
    "v2 event token without eventIdentifier": "82640000000000000A2B042C0100296E1404",
    "eventIdentifier not an object": "82640000000000000A2B042C0100296E142B0204",
    "high water mark with trailing eventIdentifier": "82640000000000000A2B0429296E14460004",
    "negative fragmentNum": "82640000000000000A2B042C0100296E14460027FD04",
    "extra elements": "82640000000000000A2B042C0100296E1446002B022B0204",
}


def test_bad_tokens_get_the_servers_codes() -> None:
    for row in shared_json("vectors/token_errors.json")["decode"]:
        if "_typeBits" in row.get("case", ""):
            good = {"_data": "82640000000000000A2B0229296E04"}
            token: Any = {**good, "_typeBits": bytes.fromhex("A5554D56FF")}
        else:
            token = {"_data": row["hex"] if "hex" in row else ERRORS[row["case"]]}
        with pytest.raises(BadToken) as raised:
            ResumeToken.parse(token)
        assert raised.value.code == row["code"], row
