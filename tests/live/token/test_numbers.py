"""The keys of numbers are the server's, and every number comes back out of its token."""

from __future__ import annotations

import contextlib
import os
import random
from typing import Any

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import BulkWriteError
from tests.support.change_streams import differences, engine_stream, now, server_stream, settle
from tests.support.effort import effort
from tests.support.number_values import Numbers

from tailrace.token import ResumeToken

RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
COUNT = effort(10_000)


def test_the_tokens_of_numbers_are_the_servers_and_say_the_number(
    mongodb_client: MongoClient[dict[str, Any]], database: Database[dict[str, Any]]
) -> None:
    seed = int(os.environ.get("TAILRACE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TAILRACE_SEED={seed}")
    rng = random.Random(seed)
    numbers = Numbers(rng)
    start = now(mongodb_client)
    # Two in a key: what the first leaves behind in the type bits, the second has to find.
    documents = [{"_id": {"a": numbers.number(), "b": numbers.number()}} for _ in range(COUNT)]
    with contextlib.suppress(BulkWriteError):
        database.numbers.insert_many(documents, ordered=False)
    options = {"startAtOperationTime": start}
    until = settle(mongodb_client)
    theirs = server_stream(mongodb_client, database.name, options, until=until)
    ours = engine_stream(mongodb_client, database.name, options, until=until)
    assert not differences(ours.events, theirs.events)
    assert len(theirs.events) > COUNT * 0.9
    for raw in theirs.events:
        event = bson.decode(raw, RAW)
        token = ResumeToken.parse(event["_id"].raw)
        assert bson.encode(token.document) == event["_id"].raw, token
        assert event["documentKey"].raw in (token.identifier or b"")
