"""The options of the source, parsed once into one frozen object.

Spark hands options over as strings and forgets their case. An unknown name is an error
that names the nearest; a value that is no value of its option is one that says what is.
Nothing is asked of a server here: ``startAt=now`` becomes a time when the query starts.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from tailrace.errors import BadToken, OptionError
from tailrace.spark.source.offsets import parse_time
from tailrace.token import ResumeToken

MAX_EVENTS = 250_000
"""Events in a batch, unless told: enough to pay for a commit, little enough to wait for."""
MAX_SLICES = 8
DOCUMENT_FORMS = ("json", "bson")
BEFORE_CHANGES = ("off", "whenAvailable", "required")


@dataclass(frozen=True, slots=True)
class StartAt:
    """Where a query begins: a cluster time (its events included), behind a token, or now."""

    time: int | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a query asks of the source; the URI may hold a password and is not shown."""

    uri: str = field(default="", repr=False)
    archives: str = ""
    """A directory of oplog archives, read instead of a deployment (batch reads only)."""
    server_version: str = "6.0"
    """Of an archive: which release's events its entries become."""
    namespaces: tuple[str, ...] = ()
    exclude_namespaces: tuple[str, ...] = ()
    start: StartAt = StartAt()
    end: StartAt = StartAt()
    """Where a batch read ends; its events included."""
    before_change: str = "off"
    max_events: int = MAX_EVENTS
    max_bytes: int | None = None
    slices: int = MAX_SLICES
    documents: str = "json"


def parse_source_options(given: Mapping[str, str]) -> SourceOptions:
    """The options of one query; the error of the first that is wrong."""
    parsed = SourceOptions()
    for name, value in given.items():
        option = _BY_LOWER_NAME.get(name.lower())
        if option is None:
            raise _unknown(name)
        known, attribute, parse = option
        try:
            read = parse(known, value)
            parsed = replace(parsed, **{attribute: read}) if attribute else parsed
        except (ValueError, BadToken) as error:
            raise OptionError(f"{known}: {error}", option=known) from error
    if bool(parsed.uri) == bool(parsed.archives):
        raise OptionError(
            "one of uri (a deployment) and archives (a directory) is needed", option="uri"
        )
    return parsed


def _unknown(name: str) -> OptionError:
    near = difflib.get_close_matches(name.lower(), _BY_LOWER_NAME, n=1, cutoff=0)
    nearest = _BY_LOWER_NAME[near[0]][0]
    return OptionError(
        f"{name} is no option of the source: is {nearest} meant? Known are {', '.join(OPTIONS)}",
        option=name,
        nearest=nearest,
    )


def _text(name: str, value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _uri(name: str, value: str) -> str:
    if not value.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("a connection string begins with mongodb:// or mongodb+srv://")
    return value


def _patterns(name: str, value: str) -> tuple[str, ...]:
    patterns = tuple(part.strip() for part in value.split(",") if part.strip())
    for pattern in patterns:
        database, _, collection = pattern.partition(".")
        if not (database and collection):
            raise ValueError(f"{pattern!r} is not of the form database.collection, or shop.*")
    return patterns


def _number(name: str, value: str) -> int:
    number = int(value) if value.isascii() and value.isdigit() else 0
    if number < 1:
        raise ValueError(f"{value!r} is no whole number above 0")
    return number


def _word(*words: str) -> Callable[[str, str], str]:
    def parse(name: str, value: str) -> str:
        if value not in words:
            raise ValueError(f"{value!r} is none of {', '.join(words)}")
        return value

    return parse


def _no_images(name: str, value: str) -> None:
    if value == "updateLookup":
        raise ValueError(
            "updateLookup shows the document as it is when it is asked for, so a batch that is "
            "read again would show another one; the raw diff rebuilds it instead"
        )
    if value != "default":
        raise ValueError(f"{value!r} is not supported: default is")


def _moment(name: str, value: str) -> StartAt:
    if value == "now":
        return StartAt()
    time = parse_time(value)
    if time is not None:
        return StartAt(time)
    if value[:2] == "82" and value.isalnum() and len(value) >= _MIN_TOKEN_DIGITS:
        token = ResumeToken.parse(value)
        mark = token.is_high_water_mark
        return StartAt(token.cluster_time, None if mark else token.data.decode())
    try:
        said = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(
            f"{value!r} is neither now, an ISO time, Timestamp(seconds, increment) nor a token"
        ) from None
    moment = said if said.tzinfo else said.replace(tzinfo=timezone.utc)
    return StartAt(max(0, int(moment.timestamp())) << 32)


_MIN_TOKEN_DIGITS = 20
OPTIONS: dict[str, tuple[str, Callable[[str, str], Any], str]] = {
    "uri": (
        "uri",
        _uri,
        "the deployment's connection string (a replica set)",
    ),
    "archives": (
        "archives",
        _text,
        "a directory of oplog archives instead of a deployment; batch reads only",
    ),
    "path": (
        "archives",
        _text,
        "the same as `archives`, as `load(path)` sets it",
    ),
    "serverVersion": (
        "server_version",
        _text,
        "the release that wrote the archives; 6.0 unless told",
    ),
    "namespaces": (
        "namespaces",
        _patterns,
        "patterns of what is wanted, such as `shop.*, *.orders`; all unless told",
    ),
    "excludeNamespaces": (
        "exclude_namespaces",
        _patterns,
        "patterns of what is not; they win",
    ),
    "startAt": (
        "start",
        _moment,
        "`now`, an ISO time, `Timestamp(t, i)` or a resume token; a checkpoint wins",
    ),
    "endAt": (
        "end",
        _moment,
        "where a batch read ends, its events included; `now` unless told",
    ),
    "fullDocument": (
        "",
        _no_images,
        "`default` only: a look-up could not be repeated",
    ),
    "fullDocumentBeforeChange": (
        "before_change",
        _word(*BEFORE_CHANGES),
        "`off`, `whenAvailable` or `required`",
    ),
    "maxEventsPerBatch": (
        "max_events",
        _number,
        "how many entries a batch holds at most; soft; 250000 unless told",
    ),
    "maxBytesPerBatch": (
        "max_bytes",
        _number,
        "how many bytes of log a batch holds at most; soft",
    ),
    "slices": (
        "slices",
        _number,
        "how many tasks read a batch at most; 8 unless told",
    ),
    "documents": (
        "documents",
        _word(*DOCUMENT_FORMS),
        "`json` (canonical Extended JSON) or `bson`",
    ),
}
"""An option's name to what it sets, what reads its value, and what it says."""
_BY_LOWER_NAME = {name.lower(): (name, *what[:2]) for name, what in OPTIONS.items()}
