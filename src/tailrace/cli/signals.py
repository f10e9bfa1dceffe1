"""The words of an operating system that ask a command to end."""

from __future__ import annotations

import signal
import threading


def until_signalled(stopping: threading.Event | None = None) -> threading.Event:
    """Set by the first SIGINT or SIGTERM; a second one ends the process as usual.

    A library may have put itself in the way: call it again with the event.
    """
    stopping = stopping or threading.Event()

    def stop(number: int, _frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return stopping
