"""What the first ``$match`` stages say of an event before it is built.

An event's type, namespace, key and time are known from its oplog entry. The conditions
that ask for nothing else are split off here; what is left of a query is asked of the
finished event, so a filter may let more through than the query, and never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailrace.query.expressions import Scope
from tailrace.query.match import Predicate, parse_match
from tailrace.query.values import Value, document, fields, items
from tailrace.raw.elements import ARRAY, OBJECT

OF_KIND = frozenset((b"operationType", b"ns"))
OF_ENTRY = frozenset((b"documentKey", b"clusterTime"))


@dataclass(frozen=True, slots=True)
class Prefilter:
    """Two questions: one that depends on type and namespace alone, one on the rest."""

    kind: Predicate | None
    """Asked of ``{operationType, ns}``; its answer can be remembered."""
    entry: Predicate | None
    """Asked of ``{documentKey, clusterTime}``."""


def prefilter(queries: Sequence[Value], scope: Scope) -> Prefilter | None:
    """The filter of the queries of the first stages; None when they say nothing early."""
    conditions = [each for query in queries for each in _conditions(query)]
    kind = [each for each in conditions if _root(each[0]) in OF_KIND]
    entry = [each for each in conditions if _root(each[0]) in OF_ENTRY]
    if not kind and not entry:
        return None
    return Prefilter(_predicate(kind, scope), _predicate(entry, scope))


def _predicate(conditions: Sequence[tuple[bytes, Value]], scope: Scope) -> Predicate | None:
    return parse_match(document(conditions), scope) if conditions else None


def _conditions(query: Value) -> Iterator[tuple[bytes, Value]]:
    """What must all hold, out of every ``$and``."""
    for name, value in fields(query):
        if name == b"$and" and value[0] == ARRAY:
            for each in items(value):
                if each[0] == OBJECT:
                    yield from _conditions(each)
        elif not name.startswith(b"$"):
            yield name, value


def _root(path: bytes) -> bytes:
    return path.partition(b".")[0]
