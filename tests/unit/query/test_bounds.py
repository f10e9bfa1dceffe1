"""What would run for ever, or nest too deep to be read, ends with a clear error."""

from __future__ import annotations

from typing import Any

import bson
import pytest

from tailrace.errors import NotEvaluable, OptionError, ServerError
from tailrace.query import Context, compile_pipeline
from tailrace.query.context import MAX_NESTING

CONTEXT = Context((7, 0, 28))


def nested(depth: int) -> dict[str, Any]:
    made: Any = "$a"
    for _ in range(depth):
        made = {"$not": [made]}
    return {"$set": {"b": made}}


def test_a_regular_expression_that_explodes_ends_with_an_error() -> None:
    pipeline = compile_pipeline([{"$match": {"a": {"$regex": r"(a|aa|a?)+\1*$"}}}], CONTEXT)
    assert pipeline.run(bson.encode({"a": "aaaa"}))
    with pytest.raises(ServerError) as raised:
        pipeline.run(bson.encode({"a": "a" * 60 + "b" * 60}))
    assert raised.value.code == 51156
    assert "limit" in raised.value.message


def test_a_pipeline_may_nest_up_to_the_bound() -> None:
    deep = MAX_NESTING // 2 - 4
    assert compile_pipeline([nested(deep)], CONTEXT).run(bson.encode({"a": 1}))


@pytest.mark.parametrize("depth", [MAX_NESTING, 2_000])
def test_a_pipeline_that_nests_deeper_is_refused(depth: int) -> None:
    with pytest.raises((ServerError, OptionError)):
        compile_pipeline([nested(depth)], CONTEXT)


def test_what_only_a_server_evaluates_is_refused_by_its_name() -> None:
    with pytest.raises(NotEvaluable) as raised:
        compile_pipeline([{"$set": {"a": {"$rand": {}}}}], CONTEXT)
    assert raised.value.operator == "$rand"
    pipeline = compile_pipeline([{"$set": {"b": {"$sin": "$a"}}}], CONTEXT)
    with pytest.raises(NotEvaluable) as raised:
        pipeline.run(bson.encode({"a": bson.Decimal128("1.5")}))
    assert raised.value.operator == "$sin"
