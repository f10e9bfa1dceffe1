"""Which table shows which namespace, and what DDL does to it.

A table is a folder that is never moved nor removed. A drop empties it; a rename gives
its rows another namespace, and empties the table that the target had. ``route`` takes
the DDL of a batch in order, between ``stretches`` of writes, and says for each stretch
which table a namespace's writes belong to, and which tables are emptied where. It is a
fold: however the same events are cut into batches, the same names come out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tailrace.spark.apply.naming import table_name

_CONVERTED = re.compile(r"tmp\w{5}\.convertToCapped\.")
"""What convertToCapped copies into and then renames: no stream shows the copied documents."""

Namespaces = dict[str, str]
"""Namespace to table."""


@dataclass(frozen=True, slots=True)
class Ddl:
    """A drop, rename or dropDatabase of the stream."""

    operation: str
    db: str
    coll: str | None
    effective: int
    target: str | None = None
    """The namespace that a rename gives; None where it is not followed."""
    known: bool = True
    """Whether a rename's source is followed, so that its documents are there."""


@dataclass(slots=True)
class Routes:
    """Where the writes of one batch go."""

    tables: Namespaces
    """The mapping behind the batch."""
    taken: set[str]
    """Every table that was ever named."""
    of: dict[tuple[int, str], str] = field(default_factory=dict)
    """(stretch, namespace) to table; a stretch's number is that of the DDL before it."""
    emptied: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Table to where it was emptied: (number of the DDL, its effective time)."""
    unread: set[str] = field(default_factory=set)
    """Tables that a rename brought in with documents that nobody has read, if not emptied since."""

    def name(self, namespace: str) -> str:
        """The table of a namespace; a new one, if it has none."""
        if namespace not in self.tables:
            self.tables[namespace] = table_name(namespace, self.taken)
            self.taken.add(self.tables[namespace])
        return self.tables[namespace]

    def last_emptied(self, table: str, behind: int) -> int | None:
        """The number of the last DDL behind a time that emptied the table."""
        numbers = [
            number for number, effective in self.emptied.get(table, ()) if effective > behind
        ]
        return max(numbers, default=None)


def route(
    tables: Mapping[str, str],
    taken: Iterable[str],
    stretches: Sequence[Sequence[str]],
    ddl: Sequence[Ddl],
    known_until: int,
) -> Routes:
    """The routes of a batch: namespaces in the order in which each stretch writes to them.

    DDL up to ``known_until`` is in ``tables`` already and changes nothing.
    """
    routes = Routes(dict(tables), set(taken))
    for number, namespaces in enumerate(stretches):
        if number and ddl[number - 1].effective > known_until:
            _ACTIONS[ddl[number - 1].operation](routes, number - 1, ddl[number - 1])
        for namespace in namespaces:
            routes.of[number, namespace] = routes.name(namespace)
    return routes


def _drop(routes: Routes, number: int, event: Ddl) -> None:
    _empty(routes, f"{event.db}.{event.coll}", number, event)


def _drop_database(routes: Routes, number: int, event: Ddl) -> None:
    for namespace in sorted(routes.tables):
        if namespace.partition(".")[0] == event.db:
            _empty(routes, namespace, number, event)


def _rename(routes: Routes, number: int, event: Ddl) -> None:
    source, target = f"{event.db}.{event.coll}", event.target
    if target is None:
        _empty(routes, source, number, event)
        return
    _empty(routes, target, number, event)
    if source in routes.tables:
        routes.tables[target] = routes.tables.pop(source)
    elif not event.known or _CONVERTED.match(event.coll or ""):
        routes.unread.add(routes.name(target))


def _empty(routes: Routes, namespace: str, number: int, event: Ddl) -> None:
    table = routes.tables.get(namespace)
    if table is not None:
        routes.emptied.setdefault(table, []).append((number, event.effective))
        routes.unread.discard(table)


_ACTIONS = {"drop": _drop, "dropDatabase": _drop_database, "rename": _rename}
