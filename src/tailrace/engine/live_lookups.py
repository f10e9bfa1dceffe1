"""Look-ups from the live replica set: earlier entries, images, documents as they are.

Every answer is majority committed and at least as new as the entry that it is asked
for, from whichever member answers. A document is looked up as the release does it:
those that look up by UUID follow a collection through a rename, and find nothing in
one that was made anew under the old name; the others go by the name alone.

Rules: facts/server-semantics, sections 3.7 and 3.8.
"""

from __future__ import annotations

from typing import Any

from bson.binary import UUID_SUBTYPE, Binary
from bson.int64 import Int64
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from pymongo.errors import OperationFailure

from tailrace.errors import ServerError
from tailrace.event.shape import Shape, Version
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.entry import Entry
from tailrace.oplog.tail import GRANT, OPLOG, RAW
from tailrace.raw import spans

CHANGE_STREAM_FATAL = 280
ON_A_VIEW = 166
NOT_FOR_VIEWS = 235
"""InvalidPipelineOperator: an option of find that a view cannot take."""
ANOTHER_COLLECTION = 361
"""CollectionUUIDMismatch."""
NAMESPACE_NOT_FOUND = 26
KNOWS_UUIDS: Version = (6, 0, 0)
"""Since then find takes the collection's UUID beside its name."""
IMAGES = "system.preimages"
IMAGES_GRANT = f"the action find on config.{IMAGES}"


class LiveLookups:
    """Answers from the replica set that is read."""

    def __init__(self, deployment: Deployment, shape: Shape) -> None:
        self._deployment = deployment
        self._version = shape.version
        self._by_uuid, self._follows = shape.looks_up_by_uuid, shape.follows_renames

    def remember(self, entry: Entry) -> None:
        """Keeps nothing: the log can be asked again."""

    def forget(self, entry: Entry) -> None:
        """Has nothing to forget."""

    def entry(self, time: int) -> bytes | None:
        """The log's entry of exactly this time."""
        return self._only("local", OPLOG, {"ts": _timestamp(time)}, time, GRANT)

    def pre_image(self, uuid: bytes, time: int, index: int) -> bytes | None:
        """The state that the server kept for this operation."""
        key = {
            "nsUUID": Binary(uuid, UUID_SUBTYPE),
            "ts": _timestamp(time),
            "applyOpsIndex": Int64(index),
        }
        kept = self._only("config", IMAGES, {"_id": key}, time, IMAGES_GRANT)
        if kept is None:
            return None
        _, start, end = spans(kept)[b"preImage"]
        return kept[start:end]

    def document(self, namespace: bytes, uuid: bytes, key: bytes, time: int) -> bytes | None:
        """The document with this key as it is now."""
        database, _, name = namespace.decode().partition(".")
        grant = f"the role read on the database {database}"
        wanted: str | Binary = name
        checked: dict[str, Any] = {}
        if self._by_uuid:
            binary = Binary(uuid, UUID_SUBTYPE)
            checked = {"collectionUUID": binary} if self._version >= KNOWS_UUIDS else {}
            wanted = name if checked else binary
        try:
            return self._only(database, wanted, RawBSONDocument(key), time, grant, **checked)
        except ServerError as error:
            moved = error.code == ANOTHER_COLLECTION and error.fields.get("actual")
            if moved and self._follows:
                # Renamed since; should it be renamed once more, it is not found.
                return self._renamed(database, error.actual, key, time, grant, checked)
            if error.code in (ANOTHER_COLLECTION, NAMESPACE_NOT_FOUND):
                return None
            raise

    def _renamed(
        self, database: str, name: str, key: bytes, time: int, grant: str, checked: dict[str, Any]
    ) -> bytes | None:
        try:
            return self._only(database, name, RawBSONDocument(key), time, grant, **checked)
        except ServerError as error:
            if error.code in (ANOTHER_COLLECTION, NAMESPACE_NOT_FOUND):
                return None
            raise

    def _only(
        self,
        database: str,
        collection: str | Binary,
        wanted: Any,
        time: int,
        grant: str,
        **fields: Any,
    ) -> bytes | None:
        """The one document that is wanted, of this time or later."""
        found = self._find(database, collection, wanted, time, grant, **fields)
        if len(found) > 1:
            raise ServerError(
                "found more than one document with the document key", code=CHANGE_STREAM_FATAL
            )
        return bytes(found[0].raw) if found else None

    def _find(
        self,
        database: str,
        collection: str | Binary,
        wanted: Any,
        time: int,
        grant: str,
        **fields: Any,
    ) -> list[RawBSONDocument]:
        deployment = self._deployment
        return deployment.ask(
            lambda: known(deployment, database, collection, wanted, time, **fields), grant
        )


def known(
    deployment: Deployment,
    database: str,
    collection: str | Binary,
    wanted: Any,
    time: int,
    **fields: Any,
) -> list[RawBSONDocument]:
    """What is found; a refusal that says something about the collection, as it says it."""
    try:
        answer = deployment.client[database].command(
            "find",
            collection,
            filter=wanted,
            limit=2,
            singleBatch=True,
            allowPartialResults=True,  # means nothing here but that no view is taken
            readConcern={"level": "majority", "afterClusterTime": _timestamp(time)},
            read_preference=deployment.read_preference,
            codec_options=RAW,
            **fields,
        )
    except OperationFailure as error:
        if error.code == NOT_FOR_VIEWS:
            raise ServerError(
                "the collection of an update is a view by now", code=ON_A_VIEW
            ) from error
        if error.code == ANOTHER_COLLECTION:
            actual = (error.details or {}).get("actualCollection")
            raise ServerError(str(error), code=ANOTHER_COLLECTION, actual=actual) from error
        raise
    return list(answer["cursor"]["firstBatch"])


def _timestamp(time: int) -> Timestamp:
    return Timestamp(time >> 32, time & 0xFFFF_FFFF)
