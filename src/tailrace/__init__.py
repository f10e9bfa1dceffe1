"""tailrace: a database's log as an ordered, resumable stream of change events."""

from tailrace.engine import replay
from tailrace.errors import ServerError, TailraceError

__all__ = [
    "ServerError",
    "TailraceError",
    "replay",
]
