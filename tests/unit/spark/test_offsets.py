"""The source's offset: frozen, readable, and read back as it was written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import CheckpointError, TailraceError
from tailrace.spark.source.offsets import Offset, ShardOffset, batch, format_time, parse_time

CUT, UNTIL = 1763500000 << 32 | 7, 1763500001 << 32 | 2
WRITTEN = (
    '{"version": 1, "cut": "Timestamp(1763500000, 7)", "shards": {"rs0": '
    '{"from": "Timestamp(1763500000, 7)", "until": "Timestamp(1763500001, 2)"}}}'
)
times = st.integers(0, (1 << 64) - 1)
shards = st.dictionaries(st.text(), st.builds(ShardOffset, times, times), max_size=3)
offsets = st.builds(Offset, times, shards, st.none() | st.text())


def test_the_written_form_is_frozen() -> None:
    offset = Offset(CUT, {"rs0": ShardOffset(CUT, UNTIL)})
    assert offset.text == WRITTEN
    assert Offset.parse(WRITTEN) == offset


@given(offsets, st.none() | offsets)
def test_an_offset_is_read_back_as_it_was(offset: Offset, began: Offset | None) -> None:
    whole = Offset(offset.cut, offset.shards, offset.after, began)
    assert Offset.parse(whole.text) == Offset.parse(whole.document) == whole


@given(times)
def test_a_time_is_read_back_as_it_was(time: int) -> None:
    assert parse_time(format_time(time)) == time


def test_the_first_batch_begins_where_its_end_says() -> None:
    now, later = (Offset(time, {"rs0": ShardOffset(time, time)}) for time in (CUT, UNTIL))
    end = Offset(UNTIL, later.shards, began=now)
    assert batch(later.document, end.document) == (now, end)
    assert batch(now.text, later.text) == (now, later)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists) | st.text())
def test_anything_else_is_refused(written: object) -> None:
    with pytest.raises(TailraceError):
        Offset.parse(written)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"cut": None},
        {"cut": "Timestamp(1, 99999999999)"},
        {"shards": []},
        {"shards": {"rs0": 1}},
        {"shards": {"rs0": {"from": "Timestamp(1, 1)"}}},
        {"began": 1},
    ],
)
def test_what_is_not_of_the_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(CheckpointError):
        Offset.parse({**json.loads(WRITTEN), **change})
