"""Whatever is read as a token, ``tailrace token decode`` can show."""

from __future__ import annotations

import bson
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import effort

from tailrace.cli.token import described
from tailrace.errors import BadToken
from tailrace.token import ResumeToken

KEYS = (
    {"_id": "a"},
    {"region": "eu", "_id": bson.ObjectId(bytes(12))},
    {"_id": {"at": bson.DatetimeMS(-1), "in": [1, bson.Code("x", {"y": 1.5})]}},
    {"_id": bson.Decimal128("1.5"), "name": bson.Regex("a", "i")},
)
WHOLE = [
    bytes.fromhex(str(ResumeToken(1 << 32, 1, uuid=bytes(16), identifier=bson.encode(key))))
    for key in KEYS
]
PIECES = st.one_of(st.binary(max_size=4), st.sampled_from([b"\x3c\xff\x00", b"\x46", b"\xf0"]))


@given(st.sampled_from(WHOLE), st.data(), st.binary(max_size=5))
@settings(max_examples=effort(300))
def test_a_damaged_token_is_refused_or_shown(
    whole: bytes, data: st.DataObject, type_bits: bytes
) -> None:
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start, min(start + 4, len(whole))))
    damaged = whole[:start] + data.draw(PIECES) + whole[end:]
    try:
        token = ResumeToken.parse({"_data": damaged.hex(), "_typeBits": type_bits})
    except BadToken:
        return
    assert dict(described(token))["version"] in "012"
