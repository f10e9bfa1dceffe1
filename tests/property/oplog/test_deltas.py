"""Damaged or foreign deltas: a document or ``BadBson``, and nothing else."""

from __future__ import annotations

import contextlib
from typing import Any

import bson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import effort

from tailrace.errors import BadBson
from tailrace.oplog.deltas import apply_delta

BEFORE = {"_id": 1, "a": {"b": [1, 2, {"c": 3}]}, "tags": ["x"]}
DELTAS: tuple[dict[str, Any], ...] = (
    {"$v": 2, "diff": {"d": {"tags": False}, "sa": {"sb": {"a": True, "l": 2, "u0": 9}}}},
    {"$v": 2, "diff": {"u": {"tags": 1}, "i": {"z": 2}}},
    {"$v": 1, "$set": {"a.b.2.c": 4, "new.deep": 1}, "$unset": {"tags": True}},
)


@settings(max_examples=effort(150))
@given(st.sampled_from(DELTAS), st.data())
def test_a_damaged_delta_is_an_error_of_ours_or_a_document(
    delta: dict[str, Any], data: st.DataObject
) -> None:
    raw = bytearray(bson.encode(delta))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadBson):
        made = apply_delta(bson.encode(BEFORE), bytes(raw))
        assert int.from_bytes(made[:4], "little") == len(made)


@pytest.mark.parametrize("other", [{}, {"_id": 1, "a": 2}, {"$v": 2}, {"$inc": {"a": 1}}])
def test_what_is_no_delta_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(BadBson):
        apply_delta(bson.encode(BEFORE), bson.encode(other))


def test_a_path_through_a_scalar_changes_nothing() -> None:
    delta = bson.encode({"$v": 1, "$set": {"tags.0.x": 1}})
    assert apply_delta(bson.encode(BEFORE), delta) == bson.encode(BEFORE)
