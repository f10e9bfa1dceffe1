"""The engine room: the stages joined to what they read, an archive or a live server."""

from tailrace.engine.live import open_oplog
from tailrace.engine.replay import replay
from tailrace.engine.stream import OplogStream, ShardStatus

__all__ = ["OplogStream", "ShardStatus", "open_oplog", "replay"]
