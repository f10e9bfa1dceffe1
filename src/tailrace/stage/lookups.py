"""The port through which stages ask for what is not in the entry before them.

A live source answers from the server, an archive from the files of a recording. Each
answer is raw BSON or None: "it is not there" is an answer, and the stage that asked
knows what it means.
"""

from __future__ import annotations

from typing import Protocol

from tailrace.oplog.entry import Entry


class Lookups(Protocol):
    """Where earlier entries, documents and their former states come from."""

    def remember(self, entry: Entry) -> None:
        """Called in log order for each entry that may be asked for again.

        Those are the entries of a transaction before its end and, of releases that keep
        images in their log, the no-op entries that may hold one. An archive keeps it until
        the transaction ends, as it cannot read backwards; a live source need not, and
        nothing is owed after a crash: entries come again.
        """

    def forget(self, entry: Entry) -> None:
        """Called for the entry that ends a transaction: its events are out, or not wanted."""

    def entry(self, time: int) -> bytes | None:
        """The oplog entry of exactly this time; None when it left the log."""

    def pre_image(self, uuid: bytes, time: int, index: int) -> bytes | None:
        """What a document was before the operation at this place; None when not kept."""

    def document(self, namespace: bytes, uuid: bytes, key: bytes, time: int) -> bytes | None:
        """A document as it is at this time or later, majority committed; None when gone."""


class NoLookups:
    """For streams that need no more than the log: every answer is "not there"."""

    def remember(self, entry: Entry) -> None:
        """Keeps nothing."""

    def forget(self, entry: Entry) -> None:
        """Has nothing to forget."""

    def entry(self, time: int) -> bytes | None:
        """No earlier entry is known."""
        return None

    def pre_image(self, uuid: bytes, time: int, index: int) -> bytes | None:
        """No former state is known."""
        return None

    def document(self, namespace: bytes, uuid: bytes, key: bytes, time: int) -> bytes | None:
        """No document is known."""
        return None
