"""One shard's change stream, opened as a mongos opens it.

A mongos does not send ``$changeStream`` to a shard but the stages that it stands for,
says that it will merge (``needsMerge``), and gets what no client sees: every event's
sort key, and the events by which it learns that a collection has reached a new shard.
The stages' filters are the server's own: it is asked to explain the plain stage first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import bson
from bson.codec_options import CodecOptions
from bson.int64 import Int64
from bson.raw_bson import RawBSONDocument

from tailrace.embedded.administration import BY_ALL, split_namespace
from tailrace.embedded.node import Node
from tailrace.embedded.wire import WireConnection
from tailrace.errors import ServerError, UnsupportedSource

RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
FOR_A_MERGE = {"fromMongos": True, "needsMerge": True}
V1_TOKENS = {"$_generateV2ResumeTokens": False}
"""What a mongos of 6.0 adds; later ones say nothing."""
FIRST_WITHOUT = "7.0"
STAGE = "$_internalChangeStream"
"""What the stages' names begin with; 6.0 explains most of them by the rest."""
TOPOLOGY: dict[str, Any] = {f"{STAGE}CheckTopologyChange": {}}
"""The stage behind ``CheckResumability`` that lets a mongos's own events through."""

IMAGES = {
    "fullDocumentBeforeChange": ("AddPreImage", "off"),
    "fullDocument": ("AddPostImage", "default"),
}
"""Which stage an option for images stands for, and what leaves the stage out."""


class ShardStream:
    """An open cursor on one node of a shard."""

    def __init__(
        self, node: Node, namespace: str | None, options: Mapping[str, Any], *, version: str
    ) -> None:
        if node.guarded:
            raise UnsupportedSource("a mongos's streams need a cluster without auth and tls")
        target, self._database = _target(namespace)
        scope = {"allChangesForCluster": True} if namespace is None else {}
        stage = {"$changeStream": {**options, **scope}}
        merged = {"aggregate": target, "cursor": {"batchSize": 0}, **FOR_A_MERGE}
        with contextlib.closing(WireConnection(node.port)) as client:
            plain = {**merged, "pipeline": [stage], "explain": True}
            explained = client.command(self._database, plain)["stages"]
        command = {
            **merged,
            "pipeline": with_images(internal_stages(explained), options),
            "readConcern": {"level": "majority"},
            "writeConcern": BY_ALL,
            **(V1_TOKENS if version < FIRST_WITHOUT else {}),
        }
        with contextlib.ExitStack() as unless_opened:
            self._mongos = WireConnection(node.port, internal=True)
            unless_opened.callback(self._mongos.close)
            opened = self._mongos.command(self._database, command)["cursor"]
            unless_opened.pop_all()
        self._id = Int64(opened["id"])
        self._collection = opened["ns"].partition(".")[2]
        self.promise: Mapping[str, Any] = opened["postBatchResumeToken"]
        """No event with a smaller token will come."""

    def read(self, await_ms: int = 1_000) -> list[RawBSONDocument]:
        """The next batch, empty when nothing came in time; moves the promise."""
        more = {"getMore": self._id, "collection": self._collection, "maxTimeMS": await_ms}
        answer = bson.decode(self._mongos.raw_command(self._database, more), RAW)
        if not answer["ok"]:
            raise ServerError(answer["errmsg"], code=answer["code"], code_name=answer["codeName"])
        cursor = answer["cursor"]
        self.promise = bson.decode(cursor["postBatchResumeToken"].raw)
        return list(cursor["nextBatch"])

    def close(self) -> None:
        """Hang up, which ends the cursor too."""
        self._mongos.close()


def internal_stages(explained: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The stages that a mongos would send, from the server's own explanation."""
    query = explained[0]["$cursor"]["queryPlanner"]["parsedQuery"]
    stages: list[dict[str, Any]] = [{f"{STAGE}OplogMatch": {"filter": query}}]
    for stage in explained[1:]:
        described = stage.get("$changeStream")
        if described is None:
            stages.append(dict(stage))
            continue
        name = described["stage"].removeprefix(STAGE).removeprefix("internal")
        said = {field: value for field, value in described.items() if field != "stage"}
        fields = stage.get(f"{STAGE}{name}", said.get("options", said))
        stages.append({f"{STAGE}{name}": fields})
        if name == "CheckResumability":
            stages.append(TOPOLOGY)
    return stages


def with_images(stages: list[dict[str, Any]], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The stages for images too, which 6.0 leaves to the mongos when it is told of one."""
    there = {name for stage in stages for name in stage}
    missing = [
        {f"{STAGE}{stage}": {option: options[option]}}
        for option, (stage, default) in IMAGES.items()
        if options.get(option, default) != default and f"{STAGE}{stage}" not in there
    ]
    return [*stages, *missing]


def _target(namespace: str | None) -> tuple[int | str, str]:
    """What ``aggregate`` names, and the database it is sent to."""
    if namespace is None:
        return 1, "admin"
    if "." not in namespace:
        return 1, namespace
    database, collection = split_namespace(namespace)
    return collection, database
