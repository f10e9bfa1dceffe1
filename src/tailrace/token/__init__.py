"""KeyString and resume tokens: the order of a stream, and every place in it."""

from tailrace.token.layout import cluster_time, event_token, high_water_mark, invalidate_token
from tailrace.token.mould import TokenMould
from tailrace.token.resume_token import ResumeToken

__all__ = [
    "ResumeToken",
    "TokenMould",
    "cluster_time",
    "event_token",
    "high_water_mark",
    "invalidate_token",
]
