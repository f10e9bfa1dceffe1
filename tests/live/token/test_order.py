"""Keys are in the order in which the server sorts the values."""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo.database import Database
from tests.support.bson_values import OLD_KEYS, UNDEFINED_VALUE, Values, document_of
from tests.support.effort import effort
from tests.support.number_values import Numbers

from tailrace.raw import spans
from tailrace.token.keystring import encode_value

RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
COUNT = effort(4_000)


def test_keys_order_as_the_server_sorts(database: Database[dict[str, Any]]) -> None:
    seed = int(os.environ.get("TAILRACE_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"TAILRACE_SEED={seed}")
    rng = random.Random(seed)
    values, numbers = Values(rng), Numbers(rng)
    kinds = (values.scalar, values.value, values.id, numbers.number)
    collection = database.get_collection("sorted", codec_options=RAW)
    # An array itself would be sorted by its least element: the values stand one level down.
    for _ in range(COUNT // 500):
        some = [document_of({"x": rng.choice(kinds)()}) for _ in range(500)]
        some += [document_of({"x": old}) for old in (*OLD_KEYS, UNDEFINED_VALUE)]
        collection.insert_many([document_of({"_id": rng.getrandbits(60), "v": v}) for v in some])
    found = [bytes(each.raw) for each in collection.find().sort("v", 1).allow_disk_use(True)]
    keys = []
    for raw in found:
        kind, start, end = spans(raw)[b"v"]
        keys.append((encode_value(kind, raw[start:end])[0], raw))
    for (left, before), (right, after) in itertools.pairwise(keys):
        assert left <= right, (before, after)
