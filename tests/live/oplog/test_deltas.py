"""Updates are applied as mongod applies them: the documents are its own, byte for byte."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure
from tests.support.bson_values import Values
from tests.support.change_streams import now
from tests.support.crud_workload import run_crud
from tests.support.effort import effort

from tailrace.embedded import ReplicaSet
from tailrace.oplog.deltas import apply_delta
from tailrace.oplog.entry import Entry, Place
from tailrace.raw import spans
from tailrace.token.keystring import encode_value

Client = MongoClient[dict[str, Any]]
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
OPERATIONS = effort(4000)
MODIFIED_DOCUMENTS = effort(400)
UPDATES_EACH = 5


@pytest.fixture
def rng() -> random.Random:
    seed = int(os.environ.get("TAILRACE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TAILRACE_SEED={seed}")
    return random.Random(seed)


def key_of(document: bytes) -> bytes:
    """Where a document stands in the _id index: 1 and 1.0 are the same place."""
    found = spans(document)[b"_id"]
    return encode_value(found[0], document[found[1] : found[2]])[0]


def entries(client: Client, database: str, since: bson.Timestamp) -> Iterator[Entry]:
    """The writes to a database; since 6.1 a delete of many is one entry with all of them."""
    oplog = client.local.get_collection("oplog.rs", codec_options=RAW)
    for raw in oplog.find({"ts": {"$gte": since}}).sort("$natural", 1):
        entry = Entry(bytes(raw.raw))
        for each in _operations(entry) if entry.command == b"applyOps" else (entry,):
            if each.namespace.startswith(f"{database}.".encode()):
                yield each


def _operations(entry: Entry) -> Iterator[Entry]:
    for at, raw in enumerate(entry.apply_ops()):
        yield Entry.inner(raw, entry, Place(at, at, entry.time))


def test_documents_rebuilt_from_the_oplog_are_the_servers_bytes(
    mongodb_client: Client, database: Database[dict[str, Any]], rng: random.Random
) -> None:
    since = now(mongodb_client)
    run_crud(database, rng.randrange(1 << 32), OPERATIONS)
    rebuilt: dict[tuple[bytes, bytes], bytes] = {}
    deltas = 0
    for entry in entries(mongodb_client, database.name, since):
        if entry.op not in (b"i", b"u", b"d") or entry.o is None:
            continue
        place = entry.namespace, key_of(entry.o2 or entry.o)
        if entry.op == b"d":
            del rebuilt[place]
        elif entry.op == b"i" or b"_id" in spans(entry.o):
            rebuilt[place] = entry.o
        else:
            deltas += 1
            rebuilt[place] = apply_delta(rebuilt[place], entry.o)
    theirs = {
        (f"{database.name}.{name}".encode(), key_of(bytes(document.raw))): bytes(document.raw)
        for name in database.list_collection_names()
        for document in database.get_collection(name, codec_options=RAW).find()
    }
    assert rebuilt == theirs
    assert deltas > OPERATIONS / 10


def test_modifiers_of_old_servers_give_what_mongod_makes_of_them(
    mongodb: ReplicaSet,
    mongodb_client: Client,
    database: Database[dict[str, Any]],
    rng: random.Random,
) -> None:
    if mongodb.version >= "6.1":
        pytest.skip("servers since 6.1 apply no modifiers")
    values = Values(rng)
    collection = database.get_collection("c", codec_options=RAW)
    applied = 0
    for number in range(MODIFIED_DOCUMENTS):
        document = {**values.document(), "tags": [1, {"a": 2}, [3]], "_id": number}
        collection.insert_one(document)
        before = bytes(collection.find_one({"_id": number}).raw)
        for _ in range(UPDATES_EACH):
            delta = old_delta(values)
            update = {"op": "u", "ns": collection.full_name, "o": delta, "o2": {"_id": number}}
            try:
                mongodb_client.admin.command("applyOps", [update])
            except OperationFailure:
                continue
            theirs = bytes(collection.find_one({"_id": number}).raw)
            assert apply_delta(before, bson.encode(delta)) == theirs, (
                f"{bson.decode(before)} and {delta}"
            )
            before = theirs
            applied += 1
    assert applied > MODIFIED_DOCUMENTS


def old_delta(values: Values) -> dict[str, Any]:
    """A ``$v: 1`` update with a few paths; some of them lead nowhere, or collide."""
    rng = values.rng
    delta: dict[str, Any] = {"$v": 1}
    if rng.random() < 0.8:
        delta["$set"] = {values.path(): values.value() for _ in range(rng.randrange(1, 5))}
    if rng.random() < 0.4 or len(delta) == 1:
        delta["$unset"] = {values.path(): True for _ in range(rng.randrange(1, 3))}
    return delta
