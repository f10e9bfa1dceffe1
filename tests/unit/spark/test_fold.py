"""What becomes of a row by the events of its key."""

from __future__ import annotations

import bson
import pytest

from tailrace.spark.apply.fold import Row, UpdateWithoutRow, Write, fold

KEY = bson.encode({"_id": 1})
OLD, NEW = bson.encode({"_id": 1, "a": 1}), bson.encode({"_id": 1, "a": 2})
SET = bson.encode({"$v": 2, "diff": {"u": {"a": 2}}})
LOADED = Row(KEY, OLD, 10, None)


def write(operation: str, time: int, effective: int | None = None) -> Write:
    document = {"insert": OLD, "replace": NEW}.get(operation)
    diff = SET if operation == "update" else None
    return Write(operation, f"{time:04}", time, effective or time, KEY, document, diff)


def folded(
    row: Row | None, *writes: Write, complete_from: int = 0, soft: bool = False
) -> Row | None:
    return fold(row, writes, complete_from=complete_from, soft=soft)


def test_events_are_applied_in_their_order() -> None:
    row = folded(None, write("insert", 1), write("update", 2))
    assert row == Row(KEY, NEW, 2, "0002")
    assert folded(row, write("delete", 3)) is None


def test_an_event_that_a_loaded_row_shows_changes_nothing() -> None:
    assert folded(LOADED, write("delete", 9), write("update", 10)) is LOADED


def test_a_prepared_transaction_is_judged_by_when_a_snapshot_sees_it() -> None:
    assert folded(LOADED, write("delete", 12, effective=10)) is LOADED
    assert folded(LOADED, write("delete", 12, effective=11)) is None


def test_an_event_that_made_the_row_is_not_applied_again() -> None:
    row = Row(KEY, OLD, 5, "0005")
    assert folded(row, write("delete", 5)) is row


def test_an_update_without_a_row_waits_while_a_load_may_explain_it() -> None:
    assert folded(None, write("update", 7), write("delete", 8), complete_from=8) is None
    with pytest.raises(UpdateWithoutRow):
        folded(None, write("update", 9), complete_from=8)


def test_a_diff_that_is_none_is_an_error_with_its_token() -> None:
    broken = write("update", 11)._replace(raw_diff=bson.encode({"$v": 2}))
    with pytest.raises(UpdateWithoutRow, match="0011"):
        folded(LOADED, broken)


def test_soft_deletes_keep_the_row_until_it_is_written_again() -> None:
    row = folded(LOADED, write("delete", 11), soft=True)
    assert row == Row(KEY, OLD, 11, "0011", deleted=True)
    assert folded(row, write("insert", 12), soft=True) == Row(KEY, OLD, 12, "0012")
