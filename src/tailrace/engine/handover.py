"""The source server as the evaluator of what is not evaluated here.

Documents go out in batches, as the literal of a ``$documents`` stage, with the user's
stages behind it; what comes back are the same bytes that a change stream would show.
Nothing is read or written on the server. It must know ``$documents``: 5.1 does.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from tailrace.oplog.deployment import Deployment
from tailrace.query.context import Version

KNOWS_DOCUMENTS: Version = (5, 1, 0)
GRANT = "any role: aggregating documents that are sent along needs none"
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)


class ServerEvaluator:
    """Stages run by the server that the stream is read from."""

    def __init__(
        self,
        deployment: Deployment,
        let: Mapping[str, Any] | None = None,
        collation: Mapping[str, Any] | None = None,
    ) -> None:
        self._deployment = deployment
        self._fields = {"let": let, "collation": collation}

    def evaluate(self, stages: Sequence[bytes], documents: Sequence[bytes]) -> list[bytes]:
        """What the server makes of the documents, in their order."""
        sent = [RawBSONDocument(each) for each in documents]
        pipeline: list[Any] = [{"$documents": {"$literal": sent}}, *map(RawBSONDocument, stages)]
        command: dict[str, Any] = {
            "aggregate": 1,
            "pipeline": pipeline,
            "cursor": {"batchSize": len(documents) + 1},
            **{name: value for name, value in self._fields.items() if value is not None},
        }
        return self._deployment.ask(lambda: self._run(command), GRANT)

    def _run(self, command: MutableMapping[str, Any]) -> list[bytes]:
        database = self._deployment.client.admin
        made: list[bytes] = []
        answer = database.command(
            command, codec_options=RAW, read_preference=self._deployment.read_preference
        )
        cursor = bson.decode(bytes(answer.raw), RAW)["cursor"]
        made += [bytes(each.raw) for each in cursor["firstBatch"]]
        while cursor["id"]:
            more: dict[str, Any] = {"getMore": cursor["id"], "collection": "$cmd.aggregate"}
            answer = database.command(
                more, codec_options=RAW, read_preference=self._deployment.read_preference
            )
            cursor = bson.decode(bytes(answer.raw), RAW)["cursor"]
            made += [bytes(each.raw) for each in cursor["nextBatch"]]
        return made
