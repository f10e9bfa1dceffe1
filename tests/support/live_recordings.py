"""A recording of what a live server just did, in the form in which replay takes it.

The same files as a recorded scenario has: the log from a time on, the images that the
server keeps, and every document that there is, with its collection and its UUID.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from tests.support.change_streams import Seen

import tailrace

RAW = CodecOptions(document_class=RawBSONDocument)
Client = MongoClient[dict[str, Any]]


@dataclass(frozen=True)
class LiveRecording:
    """The files of one recording."""

    version: str
    oplog: bytes
    pre_images: bytes
    documents: bytes

    def replay(self, namespace: str | None, options: Mapping[str, Any]) -> Seen:
        """What replay makes of it."""
        seen = Seen()
        try:
            for event in tailrace.replay(
                self.oplog,
                namespace=namespace,
                options=options,
                documents=self.documents,
                pre_images=self.pre_images,
                server_version=self.version,
            ):
                seen.events.append(event.raw)
        except tailrace.ServerError as error:
            seen.error = (error.code, error.code_name)
        return seen


def record(
    client: Client, start: bson.Timestamp, until: bson.Timestamp, *names: str
) -> LiveRecording:
    """All that replay needs of the log between two times and of these databases."""
    log = client.get_database("local", codec_options=RAW)["oplog.rs"]
    before = bson.Timestamp(start.time, start.inc - 1)
    entries = log.find({"ts": {"$gte": before, "$lte": until}})
    kept = client.get_database("config", codec_options=RAW)["system.preimages"]
    images = kept.find({"_id.ts": {"$gte": before}})
    rows = [row for name in names for row in _documents(client, name)]
    return LiveRecording(
        client.server_info()["version"],
        b"".join(bytes(entry.raw) for entry in entries),
        b"".join(bytes(image.raw) for image in images),
        b"".join(rows),
    )


def _documents(client: Client, name: str) -> list[bytes]:
    database = client.get_database(name, codec_options=RAW)
    found = []
    for listed in client[name].list_collections(filter={"type": {"$ne": "view"}}):
        if listed["type"] == "timeseries":
            continue
        collection, uuid = listed["name"], listed["info"]["uuid"]
        found += [
            bson.encode({"ns": f"{name}.{collection}", "uuid": uuid, "doc": document})
            for document in database[collection].find({})
        ]
    return found
