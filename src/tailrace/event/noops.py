"""Events of no-op entries: what sharding writes into the log for others to see.

The kind is the name of a field of ``o2``; up to 6.0 some are named by ``o2.type``
instead, and show neither namespace nor description. What remains of ``o2`` is the
description.

Reference: change_stream_events, groups 3 to 6. Rules: facts/server-semantics, 3.4,
and facts/sharded, section 5.
"""

from __future__ import annotations

from tailrace.errors import ServerError
from tailrace.event.commands import Described, finish, rest
from tailrace.event.event import Event
from tailrace.event.mould import Moulds
from tailrace.event.reference import (
    END_OF_TRANSACTION,
    NEW_SHARD,
    NEW_SHARD_OLD_NAME,
    Source,
    of_source,
)
from tailrace.oplog.entry import Entry
from tailrace.raw import document, element, string_value, text_of
from tailrace.raw.elements import OBJECT, STRING

UNKNOWN_NOOP = 5052201
RESHARDING_KINDS = (b"reshardBegin", b"reshardDoneCatchUp", b"reshardBlockingWrites")
KINDS = tuple(name for row in of_source(Source.NO_OP) for name in row.names)
"""The fields of ``o2`` that make a no-op an event, and the names of those events."""


def kind_of(entry: Entry) -> bytes:
    """The kind of a no-op entry; empty for one that is no event."""
    second = entry.second
    for kind in KINDS:
        if kind in second:
            return kind
    named = second.get(b"type")
    if named is not None and named[0] == STRING:
        name = text_of(entry.raw, named)
        if name in (NEW_SHARD, b"reshardBegin", b"reshardDoneCatchUp"):
            return name
    return b""


def new_shard_of(entry: Entry) -> str:
    """The shard that got its first range of a collection; empty where that is not said."""
    for name in (b"to", b"toShardId"):
        span = entry.second.get(name)
        if span is not None and span[0] == STRING:
            return text_of(entry.raw, span).decode(errors="replace")
    return ""


def build_noop(entry: Entry, moulds: Moulds) -> Event:
    """The event of an ``op: n`` entry."""
    kind = kind_of(entry)
    if not kind:
        raise ServerError("a no-op entry without an event", code=UNKNOWN_NOOP)
    event = _build_kind(entry, moulds, kind)
    event.is_control = kind == NEW_SHARD
    return event


def _build_kind(entry: Entry, moulds: Moulds, kind: bytes) -> Event:
    if b"type" in entry.second and kind not in entry.second:
        return _build_typed(entry, moulds, kind)
    said = Described(kind, entry.namespace, rest(entry, b"o2", kind))
    if kind in RESHARDING_KINDS:
        said.before = _resharding_uuid(entry)
    if kind == END_OF_TRANSACTION:
        said.namespace = b""
    return finish(entry, moulds, said)


def _build_typed(entry: Entry, moulds: Moulds, kind: bytes) -> Event:
    """The form of 6.0 and older: no namespace, and ``o2`` itself identifies the event."""
    operation = NEW_SHARD_OLD_NAME if kind == NEW_SHARD else kind
    said = Described(operation, b"", before=_resharding_uuid(entry))
    second = entry.sub_document(b"o2") or document()
    return finish(entry, moulds, said, document(element(b"_id", OBJECT, second)))


def _resharding_uuid(entry: Entry) -> bytes:
    span = entry.second.get(b"reshardingUUID")
    if span is None:
        return b""
    kind, start, end = span
    return element(b"reshardingUUID", kind, entry.raw[start:end])


def end_of_transaction(entry: Entry, index: int, namespaces: list[bytes]) -> Entry:
    """The no-op that a server writes (or makes up) behind a transaction's last operation."""
    place = entry.place
    lsid = place.lsid if place else None
    number = place.txn_number if place else None
    names = document(
        *(element(b"%d" % at, STRING, string_value(name)) for at, name in enumerate(namespaces))
    )
    second = document(
        element(END_OF_TRANSACTION, 4, names),
        *((element(b"lsid", OBJECT, lsid),) if lsid else ()),
        *((element(b"txnNumber", 18, number),) if number else ()),
    )
    return entry.made_up(b"n", second, index)
