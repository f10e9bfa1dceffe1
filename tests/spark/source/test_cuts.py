"""Cut, offset and replay: no case loses, doubles or tears a transaction; naive rules do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.cut_model import NAME, MadeUpLog, Model, NextEnd, check_model
from tests.support.effort import effort

from tailrace.spark.source.cuts import Limit, next_end
from tailrace.spark.source.offsets import Offset, ShardOffset

CASES = effort(5_000)
programs = st.binary(max_size=40)
starts = st.integers(0, 60)


@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@given(programs, programs, starts)
def test_no_transaction_is_lost_doubled_or_torn(log: bytes, query: bytes, start: int) -> None:
    check_model(log, query, start)


def one_token(log: MadeUpLog, start: Offset, limit: Limit) -> Offset:
    """Naive: the offset is one place in the log, and the cut is that place."""
    end = next_end(log, start, limit)
    until = end.shards[NAME].until
    if until <= start.cut:
        return start
    return replace(end, cut=until, shards={NAME: ShardOffset(until, until)})


class ByEventTime(MadeUpLog):
    """Naive: an event belongs to the batch that its own time lies in."""

    def scan(self, start: Offset, end: Offset) -> list:
        behind, cut = start.cut, end.cut
        begun = self.start_of(start)
        return [row for row in self.rows if behind < row.time <= cut and row.time > begun]

    def start_of(self, start: Offset) -> int:
        return start.shards[NAME].start if start.after else 0


NAIVE: dict[str, tuple[type[MadeUpLog], NextEnd, str]] = {
    "batch numbers": (MadeUpLog, next_end, "number"),
    "one token as offset": (MadeUpLog, one_token, "cut"),
    "cut by event time": (ByEventTime, next_end, "cut"),
}


@pytest.mark.parametrize("name", NAIVE)
def test_the_model_catches_a_naive_rule(name: str) -> None:
    kind, rule, drops_by = NAIVE[name]

    @settings(
        max_examples=CASES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs, programs, starts)
    def search(log: bytes, query: bytes, start: int) -> None:
        made = kind(log)
        times = [entry.time for entry in made.entries]
        Model(made, times[start % len(times)], rule, drops_by).run(query)

    with pytest.raises(AssertionError):
        search()
