"""Writes of a cluster, as what is to be sent and by which values its owner is found.

A statement is a command document for one shard, with the shard version that tells the
server which router's view it was made under. Pure: nothing is sent here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """One write command, before it is known where it goes."""

    namespace: str
    verb: str
    values: Document
    """The document or query in which the shard key's values stand."""
    fields: dict[str, Any]


class Writer(ABC):
    """Whoever takes writes: a cluster at once, a transaction when it commits."""

    @abstractmethod
    def run(self, statement: Statement) -> int:
        """Send a write to its owner; how many documents it matched or inserted."""

    def insert(self, namespace: str, *documents: Document, **fields: Any) -> None:
        """Insert documents, each in a command of its own to its owner."""
        for document in documents:
            self.run(Statement(namespace, "insert", document, {"documents": [document], **fields}))

    def update(
        self,
        namespace: str,
        query: Document,
        change: Document,
        *,
        upsert: bool = False,
        multi: bool = False,
        **fields: Any,
    ) -> int:
        """Update or replace; on every owner if the query lacks the shard key."""
        update = {"q": query, "u": change, "upsert": upsert, "multi": multi}
        return self.run(Statement(namespace, "update", query, {"updates": [update], **fields}))

    def delete(self, namespace: str, query: Document, *, multi: bool = False, **fields: Any) -> int:
        """Delete; on every owner if the query lacks the shard key."""
        delete = {"q": query, "limit": 0 if multi else 1}
        return self.run(Statement(namespace, "delete", query, {"deletes": [delete], **fields}))
