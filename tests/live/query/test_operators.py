"""Each operator over random values agrees with the server, in value, type and error code."""

from __future__ import annotations

import math
import random
import struct

import bson
import pytest
from bson.codec_options import CodecOptions, DatetimeConversion
from tests.support.effort import effort
from tests.support.operator_cases import CASES
from tests.support.operator_values import Values
from tests.support.oracle import LEFT, Answer, LeftToServer, Oracle, ours

from tailrace.embedded import ReplicaSet
from tailrace.embedded.binaries import mongod
from tailrace.event.shape import parse_version
from tailrace.query import Context
from tailrace.query.expressions import OPERATORS
from tailrace.query.values import document

DOCUMENTS = effort(200)
SHOWN = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
BY_THE_C_LIBRARY = frozenset(
    ("$atan2", "$log10", "$ln", "$log", "$exp", "$pow", "$sin", "$cos", "$tan", "$asin", "$acos")
) | frozenset(("$atan", "$sinh", "$cosh", "$tanh", "$asinh", "$acosh", "$atanh"))
"""Doubles that the platform's C library computes: Windows' differs in the last digits."""
FOREIGN_LIBRARY = mongod().wine
LAST_DIGITS = 1e-14


@pytest.mark.parametrize("name", CASES)
def test_an_operator_agrees_with_the_server(mongodb: ReplicaSet, name: str) -> None:
    oracle = Oracle(mongodb.client())
    context = Context(parse_version(mongodb.version))
    for number, (expression, pools) in enumerate(CASES[name]):
        values = Values(random.Random(f"{name} {number} {DOCUMENTS}"))
        documents = [
            document(zip((b"a", b"b", b"c", b"d"), map(values.of, pools), strict=False))[1]
            for _ in range(DOCUMENTS // len(CASES[name]) + 1)
        ]
        stages = [{"$replaceWith": {"v": expression}}]
        try:
            answers = ours(stages, documents, context)
        except LeftToServer as left:
            pytest.fail(f"{expression} is not read here: {left}")
        found = [
            f"{expression} of {shown(each)}: ours {shown(mine)}, theirs {shown(theirs)}"
            for each, mine, theirs in oracle.differences(stages, documents, answers)
            if not (FOREIGN_LIBRARY and name in BY_THE_C_LIBRARY and close(mine, theirs))
        ]
        assert not found, f"{len(found)} of {len(documents)} differ:\n" + "\n".join(found[:5])
        assert any(answer != LEFT for answer in answers)


def test_every_operator_has_its_cases() -> None:
    assert set(OPERATORS) - set(CASES) <= {"$const"}


def close(mine: Answer, theirs: Answer) -> bool:
    """Whether two doubles differ in their last digits only."""
    if not (isinstance(mine, bytes) and isinstance(theirs, bytes) and len(mine) == len(theirs)):
        return False
    a, b = (struct.unpack("<d", each[-9:-1])[0] for each in (mine, theirs))
    return mine[:-9] == theirs[:-9] and math.isclose(a, b, rel_tol=LAST_DIGITS)


def shown(answer: Answer) -> object:
    if not isinstance(answer, bytes):
        return answer
    try:
        return bson.decode(answer, SHOWN)
    except (bson.errors.BSONError, ValueError, UnicodeDecodeError):
        return answer
