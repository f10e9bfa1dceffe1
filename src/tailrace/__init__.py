"""tailrace: a database's log as an ordered, resumable stream of change events."""

from tailrace.driver import (
    AsyncChangeStream,
    AsyncMongoTokenStore,
    ChangeStream,
    FileTokenStore,
    MongoTokenStore,
    watch,
)
from tailrace.engine import OplogStream, explain_pipeline, open_oplog, replay
from tailrace.errors import ServerError, TailraceError

__all__ = [
    "AsyncChangeStream",
    "AsyncMongoTokenStore",
    "ChangeStream",
    "FileTokenStore",
    "MongoTokenStore",
    "OplogStream",
    "ServerError",
    "TailraceError",
    "explain_pipeline",
    "open_oplog",
    "replay",
    "watch",
]
