"""A reader of a stream in a thread of its own, as an application would be one.

It keeps what it saw while the test does something to the servers; ``Numbers`` writes
documents numbered from 0 on, so that a loss, a repetition or a wrong order shows.
"""

from __future__ import annotations

import threading
from typing import Any

import bson
from pymongo import WriteConcern
from pymongo.collection import Collection
from pymongo.database import Database
from tests.support.waiting import eventually

import tailrace

MAJORITY = WriteConcern("majority", wtimeout=30_000)


class Reader:
    """Takes batches from a stream until it is left or the stream ends."""

    def __init__(self, stream: tailrace.OplogStream) -> None:
        self.stream = stream
        self.events: list[bytes] = []
        self.tokens: list[dict[str, Any]] = []
        self.error: BaseException | None = None
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._leaving.set()
        self.stream.close()
        self._thread.join(60)

    def _read(self) -> None:
        try:
            while self.stream.alive and not self._leaving.is_set():
                events, token = self.stream.next_batch()
                self.events += events
                self.tokens.append(token)
        except tailrace.TailraceError as error:
            self.error = error

    def numbers(self) -> list[int]:
        """The numbers of the inserts that were seen."""
        assert self.error is None, self.error
        documents = [bson.decode(event) for event in list(self.events)]
        return [each["fullDocument"]["n"] for each in documents if "fullDocument" in each]

    def await_number(self, number: int) -> None:
        """Wait until an insert of this number was seen."""
        eventually(lambda: number in self.numbers()[-50:], f"number {number} is seen", 60)

    def check_complete(self, count: int) -> None:
        """Every number up to a count was seen once, in order; no token ever went back."""
        assert self.numbers() == list(range(count))
        data = [token["_data"] for token in self.tokens]
        assert data == sorted(data)


class Numbers:
    """Writes numbered documents, each acknowledged by a majority."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self.collection: Collection[dict[str, Any]] = database.get_collection(
            "numbers", write_concern=MAJORITY
        )
        self.count = 0

    def write(self, many: int = 5) -> int:
        """Write the next numbers; gives the last of them."""
        for _ in range(many):
            # The key makes a retried write one write.
            self.collection.update_one(
                {"_id": self.count}, {"$setOnInsert": {"n": self.count}}, upsert=True
            )
            self.count += 1
        return self.count - 1
