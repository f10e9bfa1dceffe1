"""A stream over an archive takes as much memory as it ever takes after its first events."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.effort import effort
from tests.support.made_logs import START, long_log, transaction
from tests.support.memory_probe import WARM, growth

ENTRIES = effort(100_000)
FLAT_MIB = 4
ENTRY_MIB = 16
"""What an oplog entry may take."""


def test_memory_stays_flat_over_any_number_of_entries() -> None:
    grown = growth("replay", "-", archive=long_log(ENTRIES))
    assert grown.events == ENTRIES
    assert grown.mib < FLAT_MIB


def with_a_transaction(entries: int) -> Iterator[bytes]:
    yield from long_log(2 * WARM)
    yield from transaction(START + 100, entries, operations=15, document_bytes=1 << 20)


def test_a_transaction_of_any_size_takes_a_few_times_one_entry() -> None:
    for entries in (7, 14):
        grown = growth("replay", "-", archive=with_a_transaction(entries))
        assert grown.events == 2 * WARM + 15 * entries
        assert grown.mib < 4.5 * ENTRY_MIB
