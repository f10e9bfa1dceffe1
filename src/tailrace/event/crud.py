"""insert, update, replace and delete: one function from an entry to its event.

The busiest path of the engine: bytes are joined, nothing is decoded. An update's
``o`` has an ``_id`` when it is a replacement; inserts of servers before 5.3 carry no
``o2``, so their key is the ``_id``, behind the shard key if the shape knows one.

Reference: change_stream_events, group 1. Spec: facts/server-semantics, 3.1 and 3.6.
"""

from __future__ import annotations

from tailrace.errors import BadBson, ServerError
from tailrace.event.event import Event, commit_timestamp, id_element, transaction_fields
from tailrace.event.mould import Moulds
from tailrace.event.shape import Shape
from tailrace.event.updates import describe_diff, describe_modifiers
from tailrace.oplog.entry import Entry, number_of
from tailrace.raw import Span, document, element, spans
from tailrace.raw.elements import BOOL, OBJECT

UPDATE_WITHOUT_DIFF = 6741200
EMPTY = b"\x05\x00\x00\x00\x00"
DIFF_HEAD = b"\x10$v\x00\x02\x00\x00\x00\x03diff\x00"
"""How the ``o`` of nearly every update begins, behind its length."""
DIFF_VERSION = 2
WRITTEN = {b"i": b"insert", b"d": b"delete"}
"""The writes whose type their ``op`` says alone."""
DIFF_AT = 4 + len(DIFF_HEAD)


def build_crud(entry: Entry, moulds: Moulds) -> Event:
    """The event of an entry whose op is ``i``, ``u`` or ``d``."""
    o = entry.o
    if o is None:
        raise BadBson("a CRUD entry without o", offset=0)
    kind = kind_of_write(entry)
    if kind == b"insert":
        key = entry.o2 or _key_of(o, moulds.shape.shard_keys.get(entry.uuid or b"", ()))
        return _event(b"insert", entry, moulds, key, _full_document(o), b"")
    if kind == b"delete":
        return _event(b"delete", entry, moulds, o, b"", b"")
    key = entry.o2 or EMPTY
    if kind == b"replace":
        return _event(b"replace", entry, moulds, key, _full_document(o), b"")
    return _event(b"update", entry, moulds, key, b"", _description(o, moulds.shape))


def kind_of_write(entry: Entry) -> bytes:
    """The operation type of a write's event; a replacement's document has an ``_id``."""
    kind = WRITTEN.get(entry.op)
    if kind is not None:
        return kind
    o = entry.o or EMPTY
    return b"replace" if not o.startswith(DIFF_HEAD, 4) and b"_id" in spans(o) else b"update"


def _full_document(o: bytes) -> bytes:
    return b"\x03fullDocument\x00" + o


def _key_of(o: bytes, shard_key: tuple[bytes, ...]) -> bytes:
    """The shard key's fields and ``_id``, each under its whole path; arrays have no paths."""
    parts = []
    for path in (*shard_key, *(() if b"_id" in shard_key else (b"_id",))):
        span = _at(o, path)
        if span is not None:
            parts.append(element(path, span[0], o[span[1] : span[2]]))
    return document(*parts)


def _at(o: bytes, path: bytes) -> Span | None:
    first, *inner = path.split(b".")
    span = spans(o).get(first)
    for name in inner:
        if span is None or span[0] != OBJECT:
            return None
        span = spans(o, span[1]).get(name)
    return span


def _description(o: bytes, shape: Shape) -> bytes:
    if shape.raw_updates:
        return b"\x03rawUpdateDescription\x00" + o
    at = diff_start(o)
    if at:
        described = describe_diff(o, at, shape.expanded and shape.disambiguates)
    elif shape.diffs_only:
        raise ServerError("an update entry that is no $v: 2 diff", code=UPDATE_WITHOUT_DIFF)
    else:
        described = describe_modifiers(o, spans(o))
    return b"\x03updateDescription\x00" + described


def diff_start(o: bytes) -> int:
    """Where in an update's ``o`` its ``$v: 2`` diff lies; 0 without one."""
    if o.startswith(DIFF_HEAD, 4):
        return DIFF_AT
    fields = spans(o)
    kind, start, _ = fields.get(b"diff", (0, 0, 0))
    return start if kind == OBJECT and number_of(o, fields.get(b"$v")) == DIFF_VERSION else 0


def _event(
    kind: bytes,
    entry: Entry,
    moulds: Moulds,
    key: bytes,
    full_document: bytes,
    description: bytes,
) -> Event:
    mould = moulds.of(kind, entry.namespace, entry.uuid)
    place, wall = entry.place, entry.wall
    index, transaction, commit = 0, b"", b""
    if place is not None:
        index, transaction, commit = place.index, transaction_fields(entry), commit_timestamp(entry)
    migrated = from_migrate(entry, moulds) if entry.from_migrate else b""
    token, type_bits = mould.token.token(entry.time, index, key)
    token_element = id_element(token, type_bits)
    body = b"".join(
        (
            transaction,
            token_element,
            mould.operation_and_time,
            entry.time.to_bytes(8, "little"),
            commit,
            mould.uuid_element,
            b"\x09wallTime\x00" + wall if wall and moulds.wall_time else b"",
            full_document,
            mould.ns_and_key,
            key,
            description,
            migrated,
        )
    )
    raw = b"%b%b\x00" % ((len(body) + 5).to_bytes(4, "little"), body)
    behind_image = len(mould.ns_and_key) + len(key) + len(description) + len(migrated) + 1
    return Event(kind, raw, token, type_bits, entry, len(raw) - behind_image, key)


def from_migrate(entry: Entry, moulds: Moulds) -> bytes:
    """The ``fromMigrate`` element, where the server is told to show it."""
    if moulds.shape.emit_from_migrate and entry.from_migrate:
        return element(b"fromMigrate", BOOL, b"\x01")
    return b""
