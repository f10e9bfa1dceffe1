"""Events of commands: collections, indexes and databases made, changed and dropped.

An ``op: c`` entry's first field names the command. Each row of ``COMMANDS`` says
what its event is called, what it is about and how it is described;
``operationDescription`` is always made, as it is part of the token, and shown under
``showExpandedEvents`` only.

Reference: change_stream_events, groups 2 and 4. Rules: facts/server-semantics, 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.errors import BadBson, ServerError
from tailrace.event.event import Event, assemble
from tailrace.event.mould import Moulds, ns_document, ns_element, uuid_element
from tailrace.event.reference import CLASSIC
from tailrace.event.shape import Shape
from tailrace.oplog.entry import Entry
from tailrace.raw import document, element, string_value, text_of
from tailrace.raw.elements import ARRAY, BOOL, OBJECT, STRING
from tailrace.token import event_token

UNKNOWN_COMMAND = 6654400
EXPANDED_TOKENS = 2
"""From this version on, the tokens of classic events name their type too."""


@dataclass(slots=True)
class Described:
    """What a command or no-op entry says of its event."""

    operation: bytes
    namespace: bytes
    description: bytes | None = None
    before: bytes = b""
    after: bytes = b""
    """What stands behind the description: ``stateBeforeChange``, ``nsType``."""


def build_command(entry: Entry, moulds: Moulds) -> Event:
    """The event of an ``op: c`` entry that is no transaction."""
    describe = COMMANDS.get(entry.command)
    if describe is None:
        name = entry.command.decode(errors="replace")
        raise ServerError(f"an oplog command without an event: {name}", code=UNKNOWN_COMMAND)
    return finish(entry, moulds, describe(entry, moulds.shape))


def finish(entry: Entry, moulds: Moulds, said: Described, identifier: bytes | None = None) -> Event:
    """The event of what an entry said; its token identifies it by type and description."""
    shape, version = moulds.shape, moulds.version
    uuid = entry.uuid
    if identifier is None and (version >= EXPANDED_TOKENS or said.operation not in CLASSIC):
        identifier = identifier_of(said)
    head = uuid_element(uuid) if shape.expanded else b""
    body = [ns_element(said.namespace)] if said.namespace else []
    if shape.expanded and said.description is not None:
        body.append(element(b"operationDescription", OBJECT, said.description))
    body.append(said.after)
    return assemble(
        said.operation,
        entry,
        event_token(version, entry.time, entry.place.index if entry.place else 0, uuid, identifier),
        before=said.before,
        head=head,
        wall=wall_element(entry, shape),
        body=b"".join(body),
    )


def identifier_of(said: Described) -> bytes:
    """The token's ``{operationType, operationDescription}``."""
    parts = [element(b"operationType", STRING, string_value(said.operation))]
    if said.description is not None:
        parts.append(element(b"operationDescription", OBJECT, said.description))
    return document(*parts)


def wall_element(entry: Entry, shape: Shape) -> bytes:
    """``wallTime``, where the version shows it."""
    return b"\x09wallTime\x00" + entry.wall if shape.wall_time and entry.wall else b""


def rest(entry: Entry, within: bytes, *without: bytes) -> bytes:
    """The document in one field of an entry, less some of its fields."""
    inside = entry.body if within == b"o" else entry.second
    return document(
        *(
            element(name, kind, entry.raw[start:end])
            for name, (kind, start, end) in inside.items()
            if name not in without
        )
    )


def _target(entry: Entry, name: bytes) -> bytes:
    """The namespace that a command is about: its database, and the collection it names."""
    return entry.namespace.partition(b".")[0] + b"." + _text(entry, name)


def _text(entry: Entry, name: bytes) -> bytes:
    span = entry.body.get(name)
    if span is None or span[0] != STRING:
        raise BadBson(f"a command whose {name.decode(errors='replace')} is no string", offset=0)
    return text_of(entry.raw, span)


def _drop(entry: Entry, shape: Shape) -> Described:
    return Described(b"drop", _target(entry, b"drop"))


def _rename(entry: Entry, shape: Shape) -> Described:
    to = element(b"to", OBJECT, ns_document(_text(entry, b"to")))
    others = [
        element(name, kind, entry.raw[start:end])
        for name, (kind, start, end) in entry.body.items()
        if name not in (b"renameCollection", b"to", b"stayTemp")
        and not (name == b"dropTarget" and kind == BOOL)
    ]
    return Described(
        b"rename",
        _text(entry, b"renameCollection"),
        document(to, *others),
        before=to,
    )


def _drop_database(entry: Entry, shape: Shape) -> Described:
    return Described(b"dropDatabase", entry.namespace.partition(b".")[0])


def _create(entry: Entry, shape: Shape) -> Described:
    kind = element(b"nsType", STRING, string_value(b"collection")) if shape.ns_types else b""
    return Described(
        b"create",
        _target(entry, b"create"),
        rest(entry, b"o", b"create"),
        after=kind if shape.expanded else b"",
    )


def _indexes(kind: int, value: bytes) -> bytes:
    return document(element(b"indexes", kind, value))


def _create_indexes(entry: Entry, shape: Shape) -> Described:
    spec = rest(entry, b"o", b"createIndexes")
    return Described(
        b"createIndexes",
        _target(entry, b"createIndexes"),
        _indexes(ARRAY, document(element(b"0", OBJECT, spec))),
    )


def _index_build(operation: bytes) -> Callable[[Entry, Shape], Described]:
    def describe(entry: Entry, shape: Shape) -> Described:
        span = entry.body.get(b"indexes")
        specs = entry.raw[span[1] : span[2]] if span else document()
        name = entry.command
        return Described(operation, _target(entry, name), _indexes(ARRAY, specs))

    return describe


def _drop_indexes(entry: Entry, shape: Shape) -> Described:
    spec = entry.sub_document(b"o2") or document()
    return Described(
        b"dropIndexes",
        _target(entry, b"dropIndexes"),
        _indexes(ARRAY, document(element(b"0", OBJECT, spec))),
    )


def _modify(entry: Entry, shape: Shape) -> Described:
    before = entry.second
    state = [
        element(shown, before[stored][0], entry.raw[before[stored][1] : before[stored][2]])
        for stored, shown in (
            (b"collectionOptions_old", b"collectionOptions"),
            (b"indexOptions_old", b"indexOptions"),
        )
        if stored in before
    ]
    return Described(
        b"modify",
        _target(entry, b"collMod"),
        rest(entry, b"o", b"collMod"),
        after=element(b"stateBeforeChange", OBJECT, document(*state)) if shape.expanded else b"",
    )


def _viewless(entry: Entry, shape: Shape) -> Described:
    """A time-series collection that changes its form shows as a rename (8.3; unchecked)."""
    name = _target(entry, b"upgradeDowngradeViewlessTimeseries")
    to = element(b"to", OBJECT, ns_document(name))
    return Described(b"rename", name, document(to), before=to)


COMMANDS: dict[bytes, Callable[[Entry, Shape], Described]] = {
    b"drop": _drop,
    b"renameCollection": _rename,
    b"dropDatabase": _drop_database,
    b"create": _create,
    b"createIndexes": _create_indexes,
    b"commitIndexBuild": _index_build(b"createIndexes"),
    b"startIndexBuild": _index_build(b"startIndexBuild"),
    b"abortIndexBuild": _index_build(b"abortIndexBuild"),
    b"dropIndexes": _drop_indexes,
    b"collMod": _modify,
    b"upgradeDowngradeViewlessTimeseries": _viewless,
}
"""A command's name to what its entry says."""
