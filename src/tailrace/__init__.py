"""tailrace: a database's log as an ordered, resumable stream of change events."""

from tailrace.driver import AsyncChangeStream, ChangeStream, watch
from tailrace.engine import OplogStream, open_oplog, replay
from tailrace.errors import ServerError, TailraceError

__all__ = [
    "AsyncChangeStream",
    "ChangeStream",
    "OplogStream",
    "ServerError",
    "TailraceError",
    "open_oplog",
    "replay",
    "watch",
]
