"""The ``$changeStream`` stage's options, read as the server reads them.

Parsed once, in the server's order of complaints, into one frozen ``StreamOptions``;
every refusal carries the server's code. Which options exist depends on the version.

Rules: facts/server-semantics, sections 4.4 and 4.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import bson
from bson.errors import BSONError

from tailrace.errors import OptionError, ServerError
from tailrace.event.shape import Shape, Version, parameter_traits
from tailrace.raw import Span, spans, text_of
from tailrace.raw.elements import BOOL, NULL, OBJECT, STRING, TIMESTAMP
from tailrace.stage.scope import Kind, Scope, Selection
from tailrace.token import ResumeToken

NOT_A_DOCUMENT = 6188500
UNKNOWN_OPTION = 40415
UNKNOWN_NAMED_SINCE: Version = (7, 0, 0)
"""Releases before this one know the code, but have no name for it."""
TYPE_MISMATCH = 14
BAD_VALUE = 2
INVALID_OPTIONS = 72
INVALID_NAMESPACE = 73
MIGRATION_EVENTS_ON_MONGOS = 31123
TWO_TOKENS = 50865
TOKEN_AND_TIME = 40674
INVALID_RESUME_TOKEN = 260
API_STRICT = 323
TOKEN_TOO_NEW = 50795
BAD_CHOICE_4_4 = 40575
"""What 4.4 and older answer to an unknown ``fullDocument``, after all else was looked at."""
CHOICES_CHECKED_SINCE: Version = (5, 0, 0)

OFF, DEFAULT, LOOKUP = b"off", b"default", b"updateLookup"
WHEN_AVAILABLE, REQUIRED = b"whenAvailable", b"required"


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its BSON type, since when it exists, and what it may say."""

    kind: int
    since: Version = (4, 2, 0)
    nullable: bool = False
    choices: tuple[bytes, ...] = ()
    newer_choices: tuple[bytes, ...] = ()
    strict_refuses: bool = False


NEWER_SINCE: Version = (6, 0, 0)
"""Since then there are post-images, and tokens of version 2 are understood."""
OPTIONS: dict[bytes, Option] = {
    b"resumeAfter": Option(OBJECT, nullable=True),
    b"startAfter": Option(OBJECT, nullable=True),
    b"startAtOperationTime": Option(TIMESTAMP, nullable=True),
    b"fullDocument": Option(
        STRING,
        nullable=True,
        choices=(DEFAULT, LOOKUP),
        newer_choices=(WHEN_AVAILABLE, REQUIRED),
    ),
    b"fullDocumentBeforeChange": Option(
        STRING, (4, 4, 0), nullable=True, choices=(OFF, WHEN_AVAILABLE, REQUIRED)
    ),
    b"allChangesForCluster": Option(BOOL),
    b"allowToRunOnConfigDB": Option(BOOL),
    b"allowToRunOnSystemNS": Option(BOOL, (5, 0, 0)),
    b"showMigrationEvents": Option(BOOL),
    b"showSystemEvents": Option(BOOL, (6, 0, 0), strict_refuses=True),
    b"showExpandedEvents": Option(BOOL, (6, 0, 0), strict_refuses=True),
    b"showRawUpdateDescription": Option(BOOL, (6, 0, 0), strict_refuses=True),
    b"matchCollectionUUIDForUpdateLookup": Option(BOOL, (6, 0, 6)),
    b"showCommitTimestamp": Option(BOOL, (8, 2, 0)),
}
"""Every option that a server knows; the versions above 7.0 are from the facts, unchecked."""
KIND_NAMES = {OBJECT: "an object", TIMESTAMP: "a timestamp", STRING: "a string", BOOL: "a bool"}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a mongos, or an application that is held to the stable API."""

    mongos: bool = False
    api_strict: bool = False


@dataclass(frozen=True, slots=True)
class Starts:
    """The start positions that stand beside the options, as arguments of their own."""

    start_at_operation_time: Any = None
    resume_after: Any = None
    start_after: Any = None


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """All that decides what a stream shows; ``start`` 0 is "from the first entry"."""

    scope: Scope
    shape: Shape
    full_document: bytes = DEFAULT
    before_change: bytes = OFF
    start: int = 0
    client_token: ResumeToken | None = None
    started_after: bool = False
    selection: Selection | None = None
    """Of the scope's namespaces, those that a delivery asked for; None is all of them."""

    @property
    def resumes_from_event(self) -> bool:
        """Whether an event must be found before anything is shown."""
        return self.client_token is not None and not self.client_token.is_high_water_mark


def parse_options(
    options: Any,
    namespace: str | None,
    version: Version,
    *,
    starts: Starts | None = None,
    parameters: Mapping[str, object] | None = None,
    caller: Caller | None = None,
) -> StreamOptions:
    """The options of a stream, or the error with which the server refuses it."""
    starts, caller = starts or Starts(), caller or Caller()
    raw = _raw_options(options)
    found = _known(raw, version, caller)
    scope = _scope(namespace, raw, found)
    if caller.mongos and _true(raw, found.get(b"showMigrationEvents")):
        raise ServerError(
            "Change streams from mongos may not show migration events",
            code=MIGRATION_EVENTS_ON_MONGOS,
        )
    full_document = _word(raw, found.get(b"fullDocument"), DEFAULT)
    if version < CHOICES_CHECKED_SINCE and full_document not in (DEFAULT, LOOKUP):
        raise ServerError(
            "unrecognized value for the 'fullDocument' option to the $changeStream stage. "
            'Expected "default" or "updateLookup"',
            code=BAD_CHOICE_4_4,
        )
    traits: dict[str, Any] = dict(parameter_traits({} if parameters is None else parameters))
    shape = Shape(
        version,
        expanded=_true(raw, found.get(b"showExpandedEvents")),
        system=_true(raw, found.get(b"showSystemEvents")),
        migrations=_true(raw, found.get(b"showMigrationEvents")),
        raw_updates=_true(raw, found.get(b"showRawUpdateDescription")),
        commit_timestamps=_true(raw, found.get(b"showCommitTimestamp")),
        matches_uuid=_true(raw, found.get(b"matchCollectionUUIDForUpdateLookup")),
        views=scope.kind is not Kind.COLLECTION,
        for_merge=caller.mongos,
        **traits,
    )
    parsed = StreamOptions(
        scope,
        shape,
        full_document=full_document,
        before_change=_word(raw, found.get(b"fullDocumentBeforeChange"), OFF),
    )
    return _with_start(parsed, raw, found, starts)


def _raw_options(options: Any) -> bytes:
    if options is None:
        return bson.encode({})
    if not isinstance(options, Mapping):
        raise ServerError(
            "the $changeStream stage must be specified as an object", code=NOT_A_DOCUMENT
        )
    try:
        return bson.encode(options)
    except (BSONError, TypeError, OverflowError) as error:
        raise OptionError(
            f"options cannot be written as BSON: {error}", option="options"
        ) from error


def _known(raw: bytes, version: Version, caller: Caller) -> dict[bytes, Span]:
    """The options that are set, each of a type and value that the server takes."""
    found = {}
    if caller.api_strict:
        _check_strictness(spans(raw), version)
    for name, span in spans(raw).items():
        option = OPTIONS.get(name)
        text = name.decode(errors="replace")
        if option is None or version < option.since:
            raise ServerError(
                f"BSON field '$changeStream.{text}' is an unknown field; known are "
                f"{', '.join(_names(version))}",
                code=UNKNOWN_OPTION,
                code_name="IDLUnknownField" if version >= UNKNOWN_NAMED_SINCE else None,
            )
        if span[0] == NULL and (option.nullable or version < CHOICES_CHECKED_SINCE):
            continue
        if span[0] != option.kind:
            raise ServerError(
                f"BSON field '$changeStream.{text}' is the wrong type, expected "
                f"{KIND_NAMES[option.kind]}",
                code=TYPE_MISMATCH,
            )
        if name != b"fullDocument" or version >= CHOICES_CHECKED_SINCE:
            _check_value(raw, text, span, option, version)
        found[name] = span
    return found


def _check_strictness(named: Mapping[bytes, Span], version: Version) -> None:
    """What is not part of the stable API may not even be named, whatever else is wrong."""
    for name in named:
        option = OPTIONS.get(name)
        if option is not None and option.strict_refuses and version >= option.since:
            raise ServerError(
                f"The '{name.decode()}' parameter to $changeStream is not supported in API "
                "Version 1",
                code=API_STRICT,
            )


def _names(version: Version) -> list[str]:
    return [name.decode() for name, option in OPTIONS.items() if version >= option.since]


def _check_value(raw: bytes, text: str, span: Span, option: Option, version: Version) -> None:
    if option.kind == STRING:
        allowed = option.choices
        if version >= NEWER_SINCE:
            allowed += option.newer_choices
        value = text_of(raw, span)
        if value not in allowed:
            choices = ", ".join(choice.decode() for choice in allowed)
            raise ServerError(
                f"Enumeration value '{value.decode(errors='replace')}' for field "
                f"'$changeStream.{text}' is not a valid value: one of {choices} is",
                code=BAD_VALUE,
            )
    if option.kind == OBJECT:
        ResumeToken.check_form(raw[span[1] : span[2]])


def _scope(namespace: str | None, raw: bytes, found: Mapping[bytes, Span]) -> Scope:
    scope = Scope.parse(namespace)
    everything = found.get(b"allChangesForCluster")
    asked = _true(raw, everything)
    on_admin = scope.kind is Kind.DATABASE and scope.database == b"admin"
    if asked and not (on_admin or scope.kind is Kind.CLUSTER):
        raise ServerError(
            "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' "
            f"database, and with no collection name; found {scope}",
            code=INVALID_OPTIONS,
        )
    if asked:
        return Scope(Kind.CLUSTER)
    if scope.kind is Kind.CLUSTER:
        if everything is None:
            return scope
        scope = Scope(Kind.DATABASE)
    internal = scope.database in (b"admin", b"local") or (
        scope.database == b"config" and not _true(raw, found.get(b"allowToRunOnConfigDB"))
    )
    if internal:
        raise ServerError(
            f"$changeStream may not be opened on the internal {scope.database.decode()} database",
            code=INVALID_NAMESPACE,
        )
    if scope.collection.startswith(b"system.") and not _true(
        raw, found.get(b"allowToRunOnSystemNS")
    ):
        raise ServerError(
            f"$changeStream may not be opened on the internal {scope} collection",
            code=INVALID_NAMESPACE,
        )
    return scope


def _with_start(
    parsed: StreamOptions, raw: bytes, found: Mapping[bytes, Span], starts: Starts
) -> StreamOptions:
    """Where the stream starts; a start in the options and one beside them count as two."""
    resumes = _tokens(raw, found.get(b"resumeAfter"), starts.resume_after)
    afters = _tokens(raw, found.get(b"startAfter"), starts.start_after)
    times = _times(raw, found.get(b"startAtOperationTime"), starts.start_at_operation_time)
    if len(resumes) + len(afters) > 1:
        raise ServerError(
            "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage",
            code=TWO_TOKENS,
        )
    tokens = [ResumeToken.parse(document) for document in (*resumes, *afters)]
    if tokens and parsed.shape.version < NEWER_SINCE:
        # These look at the token before they count the starts.
        _check_token(tokens[0], parsed, resuming=bool(resumes))
    if len(times) + len(tokens) > 1:
        raise ServerError(
            "Only one type of resume option is allowed, but multiple were found",
            code=TOKEN_AND_TIME,
        )
    if times:
        return replace(parsed, start=times[0])
    if not tokens:
        return parsed
    token = tokens[0]
    _check_token(token, parsed, resuming=bool(resumes))
    return replace(parsed, start=token.cluster_time, client_token=token, started_after=bool(afters))


def _check_token(token: ResumeToken, parsed: StreamOptions, *, resuming: bool) -> None:
    if token.version > 1 and parsed.shape.version < NEWER_SINCE:
        raise ServerError("Invalid Resume Token: only supports version 0 or 1", code=TOKEN_TOO_NEW)
    if resuming and token.from_invalidate:
        raise ServerError(
            "Attempting to resume a change stream using 'resumeAfter' is not allowed from an "
            "invalidate notification",
            code=INVALID_RESUME_TOKEN,
        )
    if (
        parsed.scope.kind is Kind.COLLECTION
        and token.uuid is None
        and not token.is_high_water_mark
        and not token.is_end_of_transaction
    ):
        raise ServerError(
            "Attempted to resume a single-collection change stream, but the resume token does "
            "not include a UUID",
            code=INVALID_RESUME_TOKEN,
        )


def _tokens(raw: bytes, span: Span | None, beside: Any) -> list[Any]:
    inside = [raw[span[1] : span[2]]] if span else []
    return inside + ([] if beside is None else [beside])


def _times(raw: bytes, span: Span | None, beside: Any) -> list[int]:
    inside = [int.from_bytes(raw[span[1] : span[2]], "little")] if span else []
    if beside is None:
        return inside
    if not isinstance(beside, bson.Timestamp):
        kind = type(beside).__name__
        raise OptionError(
            f"start_at_operation_time must be a bson.Timestamp, not {kind}",
            option="start_at_operation_time",
        )
    return [*inside, beside.time << 32 | beside.inc]


def _true(raw: bytes, span: Span | None) -> bool:
    return span is not None and span[0] == BOOL and raw[span[1]] == 1


def _word(raw: bytes, span: Span | None, default: bytes) -> bytes:
    return text_of(raw, span) if span else default
