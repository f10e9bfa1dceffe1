"""A deployment that is not there: what a server of any version would answer, in memory.

For what no server can be had for: servers without post-batch tokens, without error
labels, too old for comments on getMore, or too new. It knows writes, the two or three
stages that official cases use, and fail points; a stream on it is the real
``ChangeStream`` over the real machine, with ``FakeTransport`` between.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import bson
from bson import Int64, ObjectId, Timestamp
from pymongo.errors import AutoReconnect, OperationFailure

from tailrace.driver import ChangeStream
from tailrace.driver.commands import Wanted
from tailrace.driver.document import raw_document
from tailrace.driver.machine import ResumeMachine
from tailrace.driver.options import server_name
from tailrace.driver.patience import Patience
from tailrace.driver.profiles import PROFILES
from tailrace.driver.pymongo_commands import failure
from tailrace.driver.requests import Answer, GetMore, Kill, Open, Reply

Version = tuple[int, ...]
Document = dict[str, Any]
WIRE = (
    ((3, 6), 6),
    ((4, 0), 7),
    ((4, 2), 8),
    ((4, 4), 9),
    ((5, 0), 13),
    ((6, 0), 17),
    ((6, 1), 18),
    ((7, 0), 21),
    ((8, 0), 25),
    ((8, 1), 26),
    ((8, 2), 27),
)
BATCH_TOKENS_SINCE: Version = (4, 0, 7)
FATAL_MISSING_TOKEN_SINCE: Version = (4, 1, 8)
LABELS_SINCE: Version = (4, 3, 1)
ADDRESS = ("fake", 27017)
RESUMABLE = frozenset(
    (6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436)
)


def token(at: int) -> Document:
    """The token of a time."""
    return {"_data": f"{at:08X}"}


def time_of(document: Mapping[str, Any]) -> int:
    return int(document["_data"], 16)


@dataclass
class FailPoint:
    """What goes wrong, and how often."""

    commands: tuple[str, ...]
    times: int
    code: int | None = None
    labels: tuple[str, ...] = ()
    checked_out: bool = False
    """Whether the server fails inside getMore, where it labels the error itself."""


@dataclass
class FakeDeployment:
    """What was written, which cursors are open, and what will go wrong."""

    version: Version = (6, 0, 5)
    topology: str = "replicaset"
    commands: list[tuple[str, str, Document]] = field(default_factory=list)
    """Every command of a stream, and every insert, as a listener would see them."""

    def __post_init__(self) -> None:
        self.time = 1
        self.events: list[tuple[int, Document]] = []
        self.cursors: dict[int, FakeCursor] = {}
        self.fail_points: list[FailPoint] = []
        self.streams: list[ChangeStream] = []
        self._numbers = itertools.count(1001)

    @property
    def wire_version(self) -> int:
        return max(wire for since, wire in WIRE if self.version >= since)

    @property
    def has_batch_tokens(self) -> bool:
        return self.version >= BATCH_TOKENS_SINCE

    def write(self, event: Document) -> None:
        """Let an event happen."""
        self.time += 1
        self.events.append((self.time, event))

    def idle(self) -> None:
        """Let time pass without an event."""
        self.time += 1

    def names(self) -> list[str]:
        return [name for name, _, _ in self.commands]

    def stages(self) -> list[Document]:
        """The ``$changeStream`` stage of every aggregate."""
        return [
            command["pipeline"][0]["$changeStream"]
            for name, _, command in self.commands
            if name == "aggregate"
        ]

    def watch(
        self,
        target: FakeTarget,
        pipeline: Any = None,
        *,
        resume_policy: str = "current",
        store: Any = None,
        **given: Any,
    ) -> ChangeStream:
        """``tailrace.watch`` for a target of this deployment."""
        machine_options = {
            name: given.pop(name) for name in ("patience", "timeout_s", "clock") if name in given
        }
        known = {name: given.pop(name) for name in list(given) if name in Wanted.__slots__}
        wanted = Wanted(
            **target.namespace(),
            pipeline=copy.deepcopy(pipeline or []),
            stage_options={server_name(name): value for name, value in given.items()},
            **known,
        )
        machine = ResumeMachine(
            wanted,
            PROFILES[resume_policy],
            stored=store is not None,
            **{"clock": lambda: 0.0, **machine_options},
        )
        stream = ChangeStream(
            machine,
            FakeTransport(self),
            store,
            target=target,
            pipeline=pipeline or [],
            options=given,
            codec_options=bson.CodecOptions(),
        )
        self.streams.append(stream)
        return stream

    def perform(self, request: Open | GetMore | Kill) -> Answer:
        """Answer a command, or fail it."""
        command = dict(request.command)
        name = next(iter(command))
        database = request.database if isinstance(request, Open) else request.cursor.database
        self.commands.append((name, database, copy.deepcopy(command)))
        try:
            self._fail(name)
            document = {
                "aggregate": self._aggregate,
                "getMore": self._get_more,
                "killCursors": self._kill,
            }[name](command, database)
        except (OperationFailure, AutoReconnect) as error:
            return failure(error, self.wire_version)
        document["operationTime"] = Timestamp(self.time, 1)
        return Reply(document, ADDRESS, self.wire_version)

    def _fail(self, name: str) -> None:
        for point in self.fail_points:
            if name in point.commands and point.times:
                point.times -= 1
                if point.code is None:
                    raise AutoReconnect("connection closed")
                labels = list(point.labels)
                if point.checked_out and point.code in RESUMABLE and self.version >= LABELS_SINCE:
                    labels.append("ResumableChangeStreamError")
                raise server_error(point.code, labels)

    def _aggregate(self, command: Document, database: str) -> Document:
        (stage, *pipeline) = command["pipeline"]
        if self.topology == "single":
            raise server_error(40573)
        if not isinstance(command.get("comment", ""), str) and self.version < (4, 4):
            raise server_error(9)
        for other in pipeline:
            if next(iter(other)) not in STAGES:
                raise server_error(40324)
        options = stage["$changeStream"]
        start = self.time
        for option in ("startAfter", "resumeAfter"):
            if option in options:
                start = time_of(options[option])
        if "startAtOperationTime" in options:
            start = options["startAtOperationTime"].time - 1
        number = next(self._numbers)
        cursor = FakeCursor(number, database, command["aggregate"], options, pipeline, start)
        self.cursors[number] = cursor
        return self._batch(cursor, "firstBatch", command["cursor"].get("batchSize", 101))

    def _get_more(self, command: Document, database: str) -> Document:
        cursor = self.cursors.get(command["getMore"])
        if cursor is None:
            raise server_error(43)
        if "comment" in command and self.version < (4, 4):
            raise server_error(40415)
        return self._batch(cursor, "nextBatch", command.get("batchSize", 101))

    def _kill(self, command: Document, database: str) -> Document:
        for number in command["cursors"]:
            self.cursors.pop(number, None)
        return {"ok": 1}

    def _batch(self, cursor: FakeCursor, name: str, size: int) -> Document:
        batch, reached = [], self.time
        for at, event in self.events:
            if at <= cursor.position or not cursor.wants(event):
                continue
            if len(batch) == size:
                reached = batch[-1][0]
                break
            batch.append((at, cursor.shown(at, event, self.version)))
        cursor.position = reached
        said: Document = {
            "id": Int64(
                0 if batch and batch[-1][1].get("operationType") == "invalidate" else cursor.number
            ),
            "ns": cursor.namespace,
            name: [raw_document(bson.encode(event)) for _, event in batch],
        }
        if self.has_batch_tokens:
            said["postBatchResumeToken"] = token(reached)
        return {"cursor": said, "ok": 1}


@dataclass
class FakeCursor:
    """An open cursor: what it watches, and how far it is."""

    number: int
    database: str
    collection: Any
    options: Document
    pipeline: list[Document]
    position: int

    @property
    def namespace(self) -> str:
        whole = not isinstance(self.collection, str)
        return f"{self.database}.{'$cmd.aggregate' if whole else self.collection}"

    def wants(self, event: Document) -> bool:
        if event["operationType"] in EXPANDED and not self.options.get("showExpandedEvents"):
            return False
        ns = event["ns"]
        if not self.options.get("allChangesForCluster") and ns["db"] != self.database:
            return False
        if isinstance(self.collection, str) and ns["coll"] != self.collection:
            return False
        matches = [stage["$match"] for stage in self.pipeline if "$match" in stage]
        return all(_matches(match, event) for match in matches)

    def shown(self, at: int, event: Document, version: Version) -> Document:
        """An event as it leaves the pipeline."""
        shown = {"_id": token(at), **copy.deepcopy(event)}
        if event["operationType"] == "invalidate":
            del shown["ns"]
        if not self.options.get("showExpandedEvents") and "updateDescription" in shown:
            shown["updateDescription"].pop("disambiguatedPaths", None)
        for stage in self.pipeline:
            for name, kept in stage.get("$project", {}).items():
                if not kept:
                    shown.pop(name, None)
        if "_id" not in shown and version >= FATAL_MISSING_TOKEN_SINCE:
            labels = ["NonResumableChangeStreamError"] if version >= (4, 1, 11) else []
            raise server_error(280, labels)
        return shown


class FakeTransport:
    """The requests of one stream, answered by a deployment that is not there."""

    def __init__(self, deployment: FakeDeployment) -> None:
        self._deployment = deployment

    def perform(self, request: Open | GetMore | Kill) -> Answer:
        return self._deployment.perform(request)

    def lag(self) -> None: ...

    def end(self) -> None: ...


STAGES = ("$match", "$project", "$changeStreamSplitLargeEvent")
EXPANDED = frozenset({"create", "createIndexes", "dropIndexes", "modify", "shardCollection"})
CODE_NAMES = {
    6: "HostUnreachable",
    43: "CursorNotFound",
    216: "ElectionInProgress",
    280: "ChangeStreamFatalError",
}


def server_error(code: int, labels: Any = ()) -> OperationFailure:
    """A server's error as PyMongo raises it."""
    details = {
        "code": code,
        "codeName": CODE_NAMES.get(code, f"Location{code}"),
        "errmsg": f"failed with {code}",
        "errorLabels": list(labels),
    }
    return OperationFailure(details["errmsg"], code, details)


def _matches(match: Document, event: Document) -> bool:
    for path, wanted in match.items():
        value: Any = event
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value != wanted:
            return False
    return True


@dataclass(frozen=True)
class FakeTarget:
    """A client, database or collection of a deployment that is not there, and its writes."""

    deployment: FakeDeployment
    database: str | None = None
    name: str | None = None
    observed: bool = False
    """Whether somebody listens to its client's commands."""

    def __getitem__(self, name: str) -> FakeTarget:
        inside = self.database is not None
        within = self.database or name
        return FakeTarget(self.deployment, within, name if inside else None, self.observed)

    def namespace(self) -> Document:
        if self.database is None:
            return {"database": "admin", "whole_cluster": True}
        return {"database": self.database, "collection": self.name}

    def watch(self, *words: Any, **options: Any) -> ChangeStream:
        return self.deployment.watch(self, *words, **options)

    def _happens(self, kind: str, **more: Any) -> None:
        ns = {"db": self.database, "coll": self.name}
        self.deployment.write({"operationType": kind, "ns": ns, **more})

    def insert_one(self, document: Document) -> None:
        document = {"_id": ObjectId(), **document}
        command = {"insert": self.name, "documents": [document]}
        if self.observed:
            self.deployment.commands.append(("insert", self.database or "", command))
        self._happens("insert", fullDocument=document, documentKey={"_id": document["_id"]})

    def update_one(self, filter: Document, update: Document) -> None:  # noqa: A002
        updated = update["$set"]
        paths = {path: _parts(path) for path in updated if any(map(str.isdigit, path.split(".")))}
        description = {"updatedFields": updated, "removedFields": [], "truncatedArrays": []}
        if self.deployment.version >= (6, 1):
            description["disambiguatedPaths"] = paths
        self._happens("update", documentKey=filter, updateDescription=description)

    def replace_one(self, filter: Document, replacement: Document) -> None:  # noqa: A002
        self._happens("replace", documentKey=filter, fullDocument=replacement)

    def delete_one(self, filter: Document) -> None:  # noqa: A002
        self._happens("delete", documentKey=filter)

    def drop(self) -> None:
        self._happens("drop")
        self._happens("invalidate")

    def rename(self, to: str) -> None:
        self._happens("rename", to={"db": self.database, "coll": to})
        self._happens("invalidate")

    def drop_collection(self, collection: str) -> None: ...

    def create_collection(self, collection: str, **options: Any) -> None:
        kind = "view" if "viewOn" in options else "collection"
        more = {"nsType": kind} if self.deployment.version >= (8, 1) else {}
        self[collection]._happens("create", **more)

    def command(self, command: Document) -> None:
        database, _, collection = command["shardCollection"].partition(".")
        FakeTarget(self.deployment, database, collection)._happens("shardCollection")


def _parts(path: str) -> list[Any]:
    """Digits behind digits, or behind a field, name a field; here an index comes first."""
    first, *rest = path.split(".")
    return [
        first,
        *(int(part) if len(rest) > 1 and at == 0 else part for at, part in enumerate(rest)),
    ]


def patience(give_up_after_s: float | None, clock: Any) -> Patience:
    return Patience(give_up_after_s, clock, lambda: 1.0)
