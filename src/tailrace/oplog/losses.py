"""The errors of a log that no longer has, or never had, what a query must read.

ChangeStreamHistoryLost, as the server calls it, with the gap's two ends: from where the
query would have gone on to where the log begins now. Nothing is skipped silently. Pure.
"""

from __future__ import annotations

from datetime import datetime, timezone

from tailrace.errors import CheckpointError, ServerError

HISTORY_LOST = 286


def history_lost(start: int, oldest: int) -> ServerError:
    """The error of a position that left the log: what lies between is lost."""
    return ServerError(
        f"the position left the oplog: changes from {said(start)} to {said(oldest)} are lost to "
        "this query; load the tables again, and make the oplog larger",
        code=HISTORY_LOST,
        start=start,
        oldest=oldest,
    )


def never_there(time: int, name: str) -> CheckpointError:
    """The error of a position that this log has never had, though it reaches back behind it."""
    return CheckpointError(
        f"the checkpoint is of another source: its position {said(time)} is not in the oplog of "
        f"{name}",
        position=time,
    )


def said(time: int) -> str:
    """A cluster time for people: the form of the options, and the clock's."""
    moment = datetime.fromtimestamp(time >> 32, timezone.utc)
    return f"Timestamp({time >> 32}, {time & 0xFFFF_FFFF}) ({moment:%Y-%m-%dT%H:%M:%SZ})"
