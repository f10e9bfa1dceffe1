"""The commands of a change stream: its aggregate, its getMore, its killCursors.

``Wanted`` is what the caller asked for, parsed once. The functions make command
documents of it and of a position; they validate nothing that the server validates, and
send nothing that was not asked for.

Specification: "Helper Method", "startAtOperationTime", "resumeAfter", "startAfter".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bson.int64 import Int64
from bson.timestamp import Timestamp

from tailrace.driver.profiles import Profile
from tailrace.driver.requests import Cursor, Token

ALL_COLLECTIONS = 1
"""What an aggregate on a whole database names instead of a collection."""
GETMORE_COMMENTS_SINCE_WIRE = 9
"""MongoDB 4.4: older servers refuse a comment on getMore."""
START_TIMES_SINCE_WIRE = 7
"""MongoDB 4.0: older servers know no ``startAtOperationTime``."""

Start = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a stream was asked for."""

    database: str
    collection: str | None = None
    whole_cluster: bool = False
    pipeline: Sequence[Mapping[str, Any]] = ()
    stage_options: Mapping[str, Any] = field(default_factory=dict)
    """The stage's options without where to start."""
    resume_after: Token | None = None
    start_after: Token | None = None
    start_at_operation_time: Timestamp | None = None
    batch_size: int | None = None
    max_await_time_ms: int | None = None
    collation: Any = None
    comment: Any = None
    read_concern: Mapping[str, Any] = field(default_factory=dict)
    last_operation_time: Timestamp | None = None
    """The last operation time of the caller's session, for the profile that starts there."""

    @property
    def start(self) -> Start:
        """Where to start, as asked for: contradictions are the server's to refuse."""
        named = {
            "resumeAfter": self.resume_after,
            "startAfter": self.start_after,
            "startAtOperationTime": self.start_at_operation_time,
        }
        return {name: value for name, value in named.items() if value is not None}


def first_start(wanted: Wanted, profile: Profile) -> Start:
    """Where the first aggregate starts."""
    if wanted.start or not profile.starts_at_last_operation or wanted.last_operation_time is None:
        return wanted.start
    return {"startAtOperationTime": wanted.last_operation_time}


def aggregate(wanted: Wanted, profile: Profile, start: Start) -> dict[str, Any]:
    """The aggregate that opens a stream, for the first time or again."""
    options: dict[str, Any] = {}
    if profile.sends_default_full_document:
        options["fullDocument"] = "default"
    options.update(wanted.stage_options)
    options.update(start)
    if wanted.whole_cluster:
        options["allChangesForCluster"] = True
    command: dict[str, Any] = {
        "aggregate": wanted.collection or ALL_COLLECTIONS,
        "pipeline": [{"$changeStream": options}, *wanted.pipeline],
        "cursor": {} if wanted.batch_size is None else {"batchSize": wanted.batch_size},
    }
    if wanted.collation is not None:
        command["collation"] = wanted.collation
    if wanted.comment is not None:
        command["comment"] = wanted.comment
    if wanted.read_concern:
        command["readConcern"] = dict(wanted.read_concern)
    return command


def get_more(wanted: Wanted, cursor: Cursor, wire_version: int | None) -> dict[str, Any]:
    """The command that asks for the next batch, and waits for it on the server."""
    command: dict[str, Any] = {"getMore": Int64(cursor.number), "collection": cursor.collection}
    if wanted.batch_size is not None:
        command["batchSize"] = wanted.batch_size
    if wanted.max_await_time_ms is not None:
        command["maxTimeMS"] = wanted.max_await_time_ms
    new_enough = wire_version is None or wire_version >= GETMORE_COMMENTS_SINCE_WIRE
    if wanted.comment is not None and new_enough:
        command["comment"] = wanted.comment
    return command


def kill_cursors(cursor: Cursor) -> dict[str, Any]:
    """The command that ends a cursor."""
    return {"killCursors": cursor.collection, "cursors": [Int64(cursor.number)]}
