"""The engine room: the stages joined to what they read, an archive or a live server."""

from tailrace.engine.live import open_oplog
from tailrace.engine.replay import replay
from tailrace.engine.stream import OplogStream, ShardStatus
from tailrace.engine.user_stages import explain_pipeline

__all__ = ["OplogStream", "ShardStatus", "explain_pipeline", "open_oplog", "replay"]
