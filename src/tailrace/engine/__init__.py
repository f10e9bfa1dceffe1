"""The engine room: the stages joined to what they read, an archive or a live server."""

from tailrace.engine.replay import replay

__all__ = ["replay"]
