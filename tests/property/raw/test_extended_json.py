"""Canonical Extended JSON from bytes: PyMongo's own text, for every value."""

from __future__ import annotations

import contextlib
import random

import bson
import pytest
from bson import Code, DBRef, MaxKey, MinKey, ObjectId, Regex
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from bson.json_util import CANONICAL_JSON_OPTIONS, dumps, loads
from bson.raw_bson import RawBSONDocument
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.bson_values import Values, types_in
from tests.support.effort import effort

from tailrace.errors import BadBson
from tailrace.raw import document, element
from tailrace.raw.elements import DB_POINTER, SYMBOL, UNDEFINED
from tailrace.raw.extended_json import canonical

AS_STORED = CodecOptions(
    document_class=RawBSONDocument,
    datetime_conversion=DatetimeConversion.DATETIME_MS,
    unicode_decode_error_handler="replace",
)


def by_pymongo(raw: bytes) -> str:
    return dumps(RawBSONDocument(raw, AS_STORED), json_options=CANONICAL_JSON_OPTIONS)


@settings(max_examples=effort(300))
@given(st.randoms(use_true_random=False))
def test_the_text_is_the_one_that_pymongo_writes(rng: random.Random) -> None:
    raw = bson.encode(Values(rng).document())
    assume(not types_in(raw) & {DB_POINTER, SYMBOL, UNDEFINED})  # PyMongo gives these up
    assert canonical(raw) == by_pymongo(raw)


@pytest.mark.parametrize(
    "value",
    [
        Code("f", {"a": 1, "b": [Code("g", {})]}),
        DBRef("c", ObjectId("65" * 12), "db", more=1),
        [MinKey(), MaxKey(), Regex("a/b", "ix"), b"\x00\xff", float("nan"), {}],
        {"": "", "é\u2028": "\ud7ff\U0001f600", 'quo"te': "tab\t\\"},
    ],
)
def test_rare_values_are_written_as_pymongo_writes_them(value: object) -> None:
    raw = bson.encode({"v": value})
    assert canonical(raw) == by_pymongo(raw)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (0x06, b"", '{"$undefined": true}'),
        (0x0E, b"\x02\0\0\0a\0", '{"$symbol": "a"}'),
        (
            0x0C,
            b"\x02\0\0\0c\0" + b"\x65" * 12,
            '{"$dbPointer": {"$ref": "c", "$id": {"$oid": "' + "65" * 12 + '"}}}',
        ),
        (0x02, b"\x02\0\0\0\xff\0", '"\\ufffd"'),
    ],
)
def test_types_that_pymongo_gives_up_keep_their_form(kind: int, value: bytes, text: str) -> None:
    said = canonical(document(element(b"v", kind, value)))
    assert said == f'{{"v": {text}}}'
    loads(said)


@settings(max_examples=effort(150))
@given(st.randoms(use_true_random=False), st.data())
def test_damaged_bytes_are_an_error_of_ours_or_a_text(
    rng: random.Random, data: st.DataObject
) -> None:
    raw = bytearray(bson.encode({"code": Code("f", {"a": 1}), **Values(rng).document()}))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadBson):
        text = canonical(bytes(raw))
        with contextlib.suppress(BSONError, ValueError, TypeError):
            loads(text)


def test_a_document_that_nests_without_end_is_refused() -> None:
    raw = document()
    for _ in range(300):
        raw = document(element(b"a", 3, raw))
    with pytest.raises(BadBson):
        canonical(raw)
