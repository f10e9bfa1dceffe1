"""What a stream watches: one collection, one database, or the whole deployment.

The patterns are the server's own (facts/server-semantics, section 4.1), compiled
over bytes: internal databases and system collections are left out, and
``showSystemEvents`` lets a few of the latter in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from tailrace.errors import OptionError
from tailrace.event.shape import Shape

_ANY_DATABASE = rb"(?!(?:admin|config|local)\.)[^.]+"
_ANY_COLLECTION = rb"(?!(?:\$|system\.))"
_SOME_SYSTEM = rb"(?!(?:\$|system\.(?!(?:js$|resharding\.|buckets\.|views$))))"
_SOME_SYSTEM_6_0 = rb"(?!(?:\$|system\.(?!(?:js$|buckets\.|views$))))"
"""6.0 keeps a resharding's temporary collection to itself."""
_SOME_SYSTEM_6_0_5 = rb"(?!(?:\$|system\.(?!(?:js$|buckets\.))))"
"""Its first releases do not show what happens to the catalog of views itself."""
COMMAND = b"$cmd"


class Kind(Enum):
    """The three widths of a scope."""

    COLLECTION = "collection"
    DATABASE = "database"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a stream watches."""

    kind: Kind
    database: bytes = b"admin"
    collection: bytes = b""

    @classmethod
    def parse(cls, namespace: str | None) -> Scope:
        """None is the whole deployment, ``db`` a database, ``db.coll`` a collection."""
        if namespace is None:
            return cls(Kind.CLUSTER)
        if not isinstance(namespace, str):
            kind = type(namespace).__name__
            raise OptionError(f"namespace must be a string, not {kind}", option="namespace")
        raw = namespace.encode(errors="replace")
        database, dot, collection = raw.partition(b".")
        if not database or (dot and not collection) or 0 in raw or raw.decode() != namespace:
            raise OptionError(
                f"namespace {namespace!r} is neither a database nor db.collection",
                option="namespace",
            )
        return cls(Kind.COLLECTION if dot else Kind.DATABASE, database, collection)

    def __str__(self) -> str:
        parts = (self.database, self.collection) if self.collection else (self.database,)
        text = b".".join(parts).decode(errors="replace")
        return "the whole deployment" if self.kind is Kind.CLUSTER else text


class Selection:
    """Of a stream's namespaces, those that were asked for: ``shop.*``, ``*.orders``.

    A ``*`` stands for any characters, in the database's part for any but a dot. What is
    excluded wins. A database is selected when any collection of it can be.
    """

    def __init__(self, included: Iterable[str] = (), excluded: Iterable[str] = ()) -> None:
        wanted, unwanted = list(included) or ["*.*"], list(excluded)
        self._wanted = _any_of(wanted)
        self._unwanted = _any_of(unwanted) if unwanted else None
        self._databases = _any_of(each.partition(".")[0] for each in wanted)
        whole = [each[:-2] for each in unwanted if each.endswith(".*") and each.count(".") == 1]
        self._not_databases = _any_of(whole) if whole else None

    def collection(self, namespace: bytes) -> bool:
        """Whether ``db.coll`` is selected."""
        return _selected(namespace, self._wanted, self._unwanted)

    def database(self, name: bytes) -> bool:
        """Whether anything in a database may be."""
        return _selected(name, self._databases, self._not_databases)


def _selected(name: bytes, wanted: re.Pattern[bytes], unwanted: re.Pattern[bytes] | None) -> bool:
    return wanted.match(name) is not None and not (unwanted and unwanted.match(name))


def _any_of(patterns: Iterable[str]) -> re.Pattern[bytes]:
    found = []
    for pattern in patterns:
        database, dot, collection = pattern.encode().partition(b".")
        inside = b".*".join(map(re.escape, collection.split(b"*")))
        around = b"[^.]*".join(map(re.escape, database.split(b"*")))
        found.append(around + (rb"\." if dot else b"") + inside)
    return re.compile(rb"(?:%b)\Z" % b"|".join(found), re.DOTALL)


class Patterns:
    """The compiled patterns of a scope."""

    def __init__(self, scope: Scope, shape: Shape) -> None:
        some_system = _SOME_SYSTEM if shape.shows_resharding else _SOME_SYSTEM_6_0
        if not shape.shows_view_catalog:
            some_system = _SOME_SYSTEM_6_0_5
        collections = some_system if shape.system else _ANY_COLLECTION
        if scope.kind is Kind.CLUSTER:
            database, exact = _ANY_DATABASE, None
        else:
            database = re.escape(scope.database)
            exact = re.escape(scope.collection) if scope.kind is Kind.COLLECTION else None
        inside = collections if exact is None else exact + rb"\Z"
        self.namespace = re.compile(rb"^%b\.%b" % (database, inside), re.DOTALL)
        self.collection = re.compile(rb"^%b" % inside, re.DOTALL)
        self.command = re.compile(rb"^%b\.\$cmd\Z" % database, re.DOTALL)
        self.views = (
            None if exact is not None else re.compile(rb"^%b\.system.views\Z" % database, re.DOTALL)
        )
