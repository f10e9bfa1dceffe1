"""A batch cut into slices: times between its ends, found without reading what lies there.

The interpolation goes by time: within a second a log counts its entries from one, and
over seconds it is taken to be as busy as at its ends. Each place is then moved to the
next entry, by one seek. Slices of uneven size cost balance, nothing else: how a batch is
sliced never changes its rows.
"""

from __future__ import annotations

from typing import Protocol

ENTRIES_PER_SLICE = 5_000
"""Fewer are not worth a task of their own."""


class SeekableLog(Protocol):
    """What a log must answer for its slices to be found."""

    def count(self, start: int, end: int, most: int) -> int:
        """How many entries lie behind ``start``, up to ``end``; ``most`` stands for more."""

    def first_from(self, time: int) -> int | None:
        """The time of the first entry at or after a time."""


def slice_ends(log: SeekableLog, start: int, end: int, most: int) -> list[int]:
    """The entries that the slices of (start, end] end with, in order; the last is ``end``."""
    count = log.count(start, end, most * ENTRIES_PER_SLICE)
    pieces = min(most, count // ENTRIES_PER_SLICE)
    ends: list[int] = []
    for time in interpolated(start, end, pieces, count):
        found = log.first_from(time)
        if found is not None and (ends[-1] if ends else start) < found < end:
            ends.append(found)
    return [*ends, end]


def interpolated(start: int, end: int, pieces: int, count: int) -> list[int]:
    """The times that cut a stretch of at least ``count`` entries into even pieces."""
    seconds = (end >> 32) - (start >> 32)
    rate = max(1, count // max(seconds, 1), start & 0xFFFF_FFFF, end & 0xFFFF_FFFF)
    first, last = _place(start, rate), _place(end, rate)
    places = [first + (last - first) * piece // pieces for piece in range(1, pieces)]
    return [place // rate << 32 | place % rate for place in places]


def _place(time: int, rate: int) -> int:
    """Where a time stands when each second holds ``rate`` entries."""
    return (time >> 32) * rate + min(time & 0xFFFF_FFFF, rate - 1)
