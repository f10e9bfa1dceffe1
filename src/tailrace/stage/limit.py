"""No event is larger than what the server can send.

Rules: facts/server-semantics, section 4.5.
"""

from __future__ import annotations

from tailrace.errors import ServerError
from tailrace.event.event import Event

BSON_TOO_LARGE = 10334
MAX_EVENT_BYTES = (16 << 20) + (16 << 10)
"""A document's 16 MiB, and what the server allows around it."""


def too_large(event: Event) -> ServerError:
    """The error of an event that cannot be sent."""
    size = len(event.raw)
    return ServerError(
        f"BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and "
        f"{MAX_EVENT_BYTES}(16MB)",
        code=BSON_TOO_LARGE,
        labels=("NonResumableChangeStreamError",),
    )
