"""Keys order as the server's values do, come back with their types, and never blow up."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.datetime_ms import DatetimeMS
from bson.decimal128 import create_decimal128_context
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.effort import effort

from tailrace.errors import BadToken
from tailrace.query.ordering import compare
from tailrace.raw import spans
from tailrace.token import ResumeToken
from tailrace.token.keystring import decode_value, encode_value

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NAMES = TEXT.filter(lambda text: "\x00" not in text)
DECIMALS = st.decimals(allow_nan=False).map(
    lambda number: Decimal128(create_decimal128_context().create_decimal(number))
)
NEAR_DOUBLES = st.builds(
    lambda near, digits, exponent: Decimal128(
        create_decimal128_context().add(Decimal(near), Decimal(digits).scaleb(exponent))
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-9, 9),
    st.integers(-340, 20),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 31), (1 << 31) - 1),
    INT64.map(Int64),
    st.floats(),
    st.sampled_from([0.0, -0.0, 2.0**53, -(2.0**63), 2.0**63, 5e-324, 2.0**-255, 2.0**-256]),
    DECIMALS,
    NEAR_DOUBLES,
    st.sampled_from(["NaN", "-NaN", "Infinity", "-Infinity", "-0", "0E+6111"]).map(Decimal128),
    TEXT,
    st.binary(min_size=12, max_size=12).map(ObjectId),
    INT64.map(DatetimeMS),
    st.builds(Timestamp, st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1)),
    st.builds(Binary, st.binary(max_size=300), st.sampled_from([0, 4, 5, 128])),
    st.uuids().map(Binary.from_uuid),
    st.builds(Regex, NAMES, st.sampled_from(["", "i", "imx"])),
    NAMES.map(Code),
    st.builds(Code, NAMES, st.just({"x": 1})),
    st.sampled_from([MinKey(), MaxKey()]),
    st.builds(DBRef, NAMES.filter(bool), st.integers(0, 9)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


def raw_value(value: Any) -> tuple[int, bytes]:
    raw = bson.encode({"": value})
    kind, start, end = spans(raw)[b""]
    return kind, raw[start:end]


def canonical(value: tuple[int, bytes]) -> tuple[int, bytes]:
    """The value itself, with every NaN as the one that the server knows."""
    key, bits = encode_value(*value)
    return decode_value(key, bits)


@given(VALUES)
@example(Decimal128("1E-6176"))
@example(Decimal128("9999999999999999999999999999999999E+6111"))
@example(Decimal128("9007199254740993.5"))
@example(Decimal128("0.1"))
@example(Decimal128("1E-77"))
@example(Decimal128("0.1000000000000000055511151231257827"))
@example(Decimal128("2.225073858507201383090232717332404E-308"))
@settings(deadline=None, max_examples=effort(300))
def test_what_was_encoded_comes_back_with_its_types(value: Any) -> None:
    given_value = raw_value(value)
    key, bits = encode_value(*given_value)
    back = decode_value(key, bits)
    assert encode_value(*back) == (key, bits)
    if "nan" not in repr(value).lower():
        assert back == given_value


@given(VALUES, VALUES)
@settings(deadline=None, max_examples=effort(300))
def test_keys_order_as_values_do(left: Any, right: Any) -> None:
    a, b = raw_value(left), raw_value(right)
    key_a, key_b = encode_value(*a)[0], encode_value(*b)[0]
    assert compare(a, b) == (key_a > key_b) - (key_a < key_b)


@given(st.binary(max_size=60), st.binary(max_size=6))
@settings(deadline=None, max_examples=effort(300))
def test_random_bytes_give_our_error_or_a_value(key: bytes, bits: bytes) -> None:
    try:
        kind, raw = decode_value(key, bits)
    except BadToken:
        return
    encode_value(kind, raw)


@given(SCALARS, st.data())
@settings(deadline=None, max_examples=effort(300))
def test_a_damaged_key_gives_our_error_or_a_value(value: Any, data: st.DataObject) -> None:
    key, bits = encode_value(*raw_value(value))
    at = data.draw(st.integers(0, len(key) - 1))
    damaged = key[:at] + data.draw(st.binary(max_size=3)) + key[at + 1 :]
    try:
        kind, raw = decode_value(damaged, bits)
    except BadToken:
        return
    encode_value(kind, raw)


HEAD = "82640000000000000A2B042C0100296E14463C6F7065726174696F6E54797065003C64726F70000004"


@given(st.integers(0, len(HEAD) - 1), st.text("0123456789ABCDEFabcdefxyz ", max_size=4))
@settings(deadline=None, max_examples=effort(300))
def test_a_damaged_token_gives_our_error_and_where(at: int, damage: str) -> None:
    text = HEAD[:at] + damage + HEAD[at + 1 :]
    try:
        token = ResumeToken.parse(text)
    except BadToken as error:
        assert 0 <= error.position <= len(text)
    else:
        assert ResumeToken.parse(token.document) == token


@pytest.mark.parametrize("bad", [None, 5, "zz", {}, {"_data": 5}, [], {"_data": ""}])
def test_what_is_no_token_is_refused(bad: Any) -> None:
    with pytest.raises(BadToken):
        ResumeToken.parse(bad)
