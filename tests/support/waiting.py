"""Waiting for a condition, with a deadline; the only way in which a test lets time pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02
WITHIN_S = 30.0


def eventually(condition: Callable[[], T], what: str, within_s: float = WITHIN_S) -> T:
    """The first true value of a condition; fails when there is none in time."""
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(POLL_S)
    return value
