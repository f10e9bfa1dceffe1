"""From an entry to its event: one table from the kind of an entry to its builder.

Reference: change_stream_events. Knows no scope and no option but the shape's.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.errors import ServerError
from tailrace.event.commands import build_command
from tailrace.event.crud import build_crud
from tailrace.event.event import Event
from tailrace.event.mould import Moulds
from tailrace.event.noops import build_noop
from tailrace.event.views import build_view, is_view
from tailrace.oplog.entry import Entry

UNKNOWN_ENTRY = 7826901


def _build_write(entry: Entry, moulds: Moulds) -> Event:
    if is_view(entry.namespace) and moulds.shape.views:
        return build_view(entry, moulds)
    return build_crud(entry, moulds)


BUILDERS: dict[bytes, Callable[[Entry, Moulds], Event]] = {
    b"i": _build_write,
    b"u": _build_write,
    b"d": _build_write,
    b"c": build_command,
    b"n": build_noop,
}
"""An entry's ``op`` to what builds its event."""


def build(entry: Entry, moulds: Moulds) -> Event:
    """The event of an entry that passed the match."""
    builder = BUILDERS.get(entry.op)
    if builder is None:
        raise ServerError("an oplog entry of an unknown kind", code=UNKNOWN_ENTRY)
    return builder(entry, moulds)
