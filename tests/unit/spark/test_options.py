"""The options of the Spark source: read once, and refused with one clear line."""

from __future__ import annotations

import pickle

import pytest

from tailrace.errors import OptionError
from tailrace.spark.source.options import SourceOptions, StartAt, parse_source_options
from tailrace.token import ResumeToken

URI = "mongodb://sophie:secret@example.net/?replicaSet=rs0"
TIME = 1763500000 << 32 | 7


def parsed(**options: str) -> SourceOptions:
    return parse_source_options({"uri": URI, **options})


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("now", StartAt()),
        ("Timestamp(1763500000, 7)", StartAt(TIME)),
        ("Timestamp(1763500000,7)", StartAt(TIME)),
        ("2025-11-18T21:06:40Z", StartAt(1763500000 << 32)),
        ("2025-11-18T22:06:40+01:00", StartAt(1763500000 << 32)),
        ("2025-11-18 21:06:40", StartAt(1763500000 << 32)),
        (ResumeToken.at(TIME).data.decode(), StartAt(TIME)),
    ],
)
def test_a_start_is_a_moment_in_any_of_its_forms(text: str, start: StartAt) -> None:
    assert parsed(startAt=text).start == start


def test_the_token_of_an_event_is_kept_to_start_behind_it() -> None:
    token = ResumeToken(TIME, 1, index=3, uuid=b"u" * 16, identifier=b"\x05\0\0\0\0")
    assert parsed(startAt=token.data.decode()).start == StartAt(TIME, token.data.decode())


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("startat", "yesterday", "ISO time"),
        ("startAt", "Timestamp(99999999999, 1)", "ISO time"),
        ("startAt", "82" + "0" * 30, "startAt"),
        ("namespaces", "shop", "database.collection"),
        ("maxEventsPerBatch", "0", "above 0"),
        ("maxEventsPerBatch", "many", "above 0"),
        ("maxBytesPerBatch", "-1", "above 0"),
        ("slices", "²", "above 0"),
        ("documents", "text", "json, bson"),
        ("fullDocument", "updateLookup", "raw diff"),
        ("fullDocument", "required", "not supported"),
        ("fullDocumentBeforeChange", "yes", "whenAvailable"),
        ("uri", "localhost:27017", "mongodb://"),
        ("archives", "/some/where", "one of"),
        ("namespace", "shop.*", "namespaces"),
        ("maxEventPerBatch", "10", "maxEventsPerBatch"),
    ],
)
def test_what_is_wrong_is_refused_by_name(name: str, value: str, hint: str) -> None:
    with pytest.raises(OptionError, match=hint) as refused:
        parsed(**{name: value})
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_source_without_a_deployment_or_archives_is_refused() -> None:
    with pytest.raises(OptionError, match="uri"):
        parse_source_options({})


def test_options_reach_an_executor_whole_and_are_shown_without_the_password() -> None:
    options = parsed(namespaces="shop.*, bank.accounts", MAXEVENTSPERBATCH="10")
    assert pickle.loads(pickle.dumps(options)) == options
    assert (options.uri, options.max_events) == (URI, 10)
    assert options.namespaces == ("shop.*", "bank.accounts")
    assert "secret" not in repr(options)
