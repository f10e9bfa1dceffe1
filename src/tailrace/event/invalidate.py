"""The ``invalidate`` event, which follows the event that ends a stream.

Its token is that of the event before it with one flag turned, so it sorts directly
behind it. It names no namespace.

Reference: change_stream_events, group 2. Rules: facts/server-semantics, 4.3.
"""

from __future__ import annotations

from tailrace.event.commands import wall_element
from tailrace.event.event import Event, assemble
from tailrace.event.shape import Shape
from tailrace.token import invalidate_token


def build_invalidate(cause: Event, shape: Shape) -> Event:
    """The invalidate event behind the one that caused it."""
    return assemble(
        b"invalidate",
        cause.entry,
        (invalidate_token(cause.token), cause.type_bits),
        head=b"",
        wall=wall_element(cause.entry, shape),
        body=b"",
        plain=True,
    )
