"""Events of views: what is written to ``<db>.system.views`` says what became of a view.

Time-series collections are views too, over a bucket collection of their own. View
events carry no ``collectionUUID``; their token carries that of ``system.views``.

Reference: change_stream_events, group 4. Rules: facts/server-semantics, section 3.5.
"""

from __future__ import annotations

from tailrace.errors import ServerError
from tailrace.event.commands import (
    EXPANDED_TOKENS,
    Described,
    identifier_of,
    rest,
    wall_element,
)
from tailrace.event.event import Event, assemble
from tailrace.event.mould import Moulds, ns_element
from tailrace.event.reference import CLASSIC, Source, of_source
from tailrace.oplog.entry import Entry
from tailrace.raw import element, string_value, text_of
from tailrace.raw.elements import OBJECT, STRING
from tailrace.token import event_token

PARTIAL_VIEW_UPDATE = 6188601
VIEWS = b".system.views"
BUCKETS = b"system.buckets."
OPERATIONS = {op: row.operation for row in of_source(Source.VIEW) for op in row.names}


def is_view(namespace: bytes) -> bool:
    """Whether writes to a namespace make and unmake views."""
    return namespace.endswith(VIEWS) and namespace.count(b".") == VIEWS.count(b".")


def build_view(entry: Entry, moulds: Moulds) -> Event:
    """The event of a write to ``system.views``."""
    shape = moulds.shape
    body = entry.body
    name = body.get(b"_id")
    if name is None or name[0] != STRING:
        raise ServerError("a view is changed in part", code=PARTIAL_VIEW_UPDATE)
    operation = OPERATIONS[entry.op]
    said = Described(operation, text_of(entry.raw, name))
    if operation != b"drop":
        said.description = rest(entry, b"o", b"_id")
    parts = [ns_element(said.namespace)]
    if shape.expanded and said.description is not None:
        parts.append(element(b"operationDescription", OBJECT, said.description))
    if shape.ns_types and operation == b"create":
        parts.append(element(b"nsType", STRING, string_value(_kind(entry))))
    index = entry.place.index if entry.place else 0
    classic = moulds.version < EXPANDED_TOKENS and operation in CLASSIC
    identifier = None if classic else identifier_of(said)
    return assemble(
        operation,
        entry,
        event_token(moulds.version, entry.time, index, entry.uuid, identifier),
        head=b"",
        wall=wall_element(entry, shape),
        body=b"".join(parts),
    )


def _kind(entry: Entry) -> bytes:
    on = entry.body.get(b"viewOn")
    over_buckets = on is not None and on[0] == STRING and text_of(entry.raw, on).startswith(BUCKETS)
    return b"timeseries" if over_buckets else b"view"
