"""The key in a token is the key of the document, whatever its ``_id``."""

from __future__ import annotations

import random

import bson
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bson_values import Values, document_of
from tests.support.effort import effort

from tailrace.spark.apply.keys import key_in_text, key_of
from tailrace.token import TokenMould, high_water_mark

OPERATIONS = (b"insert", b"update", b"replace", b"delete")
INDEXES = (0, 1, 127, 128, 70_000, 1 << 24, (1 << 31) - 1)


@settings(max_examples=effort(200))
@given(
    st.integers(0, 1 << 32),
    st.sampled_from((1, 2)),
    st.sampled_from(OPERATIONS),
    st.sampled_from(INDEXES),
)
def test_a_token_ends_with_the_key_of_its_document(
    seed: int, version: int, operation: bytes, index: int
) -> None:
    rng = random.Random(seed)
    key = bytes(document_of({"_id": Values(rng).id()}).raw)
    mould = TokenMould(version, rng.randbytes(16), operation)
    token, _ = mould.token(rng.getrandbits(62) + 1, index, key)
    assert key_in_text(token.decode()) == key_of(key)


def test_equal_numbers_have_one_key_as_in_the_servers_index() -> None:
    assert len({key_of(bson.encode({"_id": one})) for one in (1, 1.0, bson.Int64(1))}) == 1


def test_a_token_without_a_key_has_none() -> None:
    assert key_in_text(high_water_mark(1 << 32, 1).decode()) == ""
