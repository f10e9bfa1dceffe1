"""insert, update, replace and delete: one function from an entry to its event.

The busiest path of the engine: bytes are joined, nothing is decoded. An update's
``o`` has an ``_id`` when it is a replacement; inserts of servers before 5.3 carry no
``o2``, so their key is the ``_id``.

Reference: change_stream_events, group 1. Spec: facts/server-semantics, 3.1 and 3.6.
"""

from __future__ import annotations

from tailrace.errors import BadBson, ServerError
from tailrace.event.event import Event, commit_timestamp, id_element, transaction_fields
from tailrace.event.mould import Moulds
from tailrace.event.updates import describe_diff, describe_modifiers
from tailrace.oplog.entry import Entry
from tailrace.raw import Span, document, element
from tailrace.raw.elements import BOOL, OBJECT

UPDATE_WITHOUT_DIFF = 6741200


def build_crud(entry: Entry, moulds: Moulds) -> Event:
    """The event of an entry whose op is ``i``, ``u`` or ``d``."""
    span = entry.fields.get(b"o")
    if span is None or span[0] != OBJECT:
        raise BadBson("a CRUD entry without o", offset=0)
    o = entry.raw[span[1] : span[2]]
    op = entry.op
    if op == b"i":
        return _event(b"insert", entry, moulds, _insert_key(entry), o, b"")
    if op == b"d":
        return _event(b"delete", entry, moulds, o, None, b"")
    key = entry.sub_document(b"o2") or b"\x05\x00\x00\x00\x00"
    body = entry.body
    if b"_id" in body:
        return _event(b"replace", entry, moulds, key, o, b"")
    return _event(b"update", entry, moulds, key, None, _description(entry, o, body, moulds))


def _insert_key(entry: Entry) -> bytes:
    key = entry.sub_document(b"o2")
    if key is not None:
        return key
    span = entry.body.get(b"_id")
    return document(element(b"_id", span[0], entry.raw[span[1] : span[2]])) if span else document()


def _description(entry: Entry, o: bytes, body: dict[bytes, Span], moulds: Moulds) -> bytes:
    shape = moulds.shape
    if shape.raw_updates:
        return b"\x03rawUpdateDescription\x00" + o
    diff = body.get(b"diff")
    if diff and diff[0] == OBJECT:
        described = describe_diff(entry.raw, diff[1], shape.expanded and shape.disambiguates)
    elif shape.diffs_only:
        raise ServerError("an update entry that is no $v: 2 diff", code=UPDATE_WITHOUT_DIFF)
    else:
        described = describe_modifiers(entry.raw, body)
    return b"\x03updateDescription\x00" + described


def _event(
    kind: bytes,
    entry: Entry,
    moulds: Moulds,
    key: bytes,
    full_document: bytes | None,
    description: bytes,
) -> Event:
    mould = moulds.of(kind, entry.namespace, entry.uuid)
    place = entry.place
    index = 0 if place is None else place.index
    token, type_bits = mould.token.token(entry.time, index, key)
    shape = moulds.shape
    front = (
        transaction_fields(entry) if place is not None else b"",
        id_element(token, type_bits),
        mould.operation_element,
        b"\x11clusterTime\x00",
        entry.time.to_bytes(8, "little"),
        commit_timestamp(entry) if place is not None else b"",
        mould.uuid_element,
        b"\x09wallTime\x00" + entry.wall if shape.wall_time and entry.wall else b"",
    )
    image_at = sum(map(len, front)) + 4
    body = b"".join(
        (
            *front,
            b"\x03fullDocument\x00" + full_document if full_document is not None else b"",
            mould.ns_element,
            b"\x03documentKey\x00",
            key,
            description,
            from_migrate(entry, moulds),
        )
    )
    raw = b"".join(((len(body) + 5).to_bytes(4, "little"), body, b"\x00"))
    return Event(kind, raw, token, type_bits, entry, image_at, key)


def from_migrate(entry: Entry, moulds: Moulds) -> bytes:
    """The ``fromMigrate`` element, where the server is told to show it."""
    if moulds.shape.emit_from_migrate and entry.flag(b"fromMigrate"):
        return element(b"fromMigrate", BOOL, b"\x01")
    return b""
