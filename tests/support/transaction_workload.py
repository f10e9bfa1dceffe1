"""Random transactions: of several collections, over several entries, prepared by hand.

What is prepared stays open while other steps are taken; ``decide`` ends it.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern
from tests.support.crud_workload import Crud

MAJORITY = WriteConcern("majority")
SMALL_TRANSACTION_ENTRIES = {"maxNumberOfTransactionOperationsInSingleOplogEntry": 3}
"""Server parameters that make an ordinary transaction span several entries."""


class Transactions:
    """The steps of a workload that are transactions."""

    def __init__(
        self,
        client: MongoClient[dict[str, Any]],
        rng: random.Random,
        databases: list[Any],
        names: list[str],
        crud: Crud,
    ) -> None:
        self.client = client
        self.rng = rng
        self.databases = databases
        self.names = names
        self.crud = crud
        self.prepared: list[tuple[ClientSession, Any]] = []

    @property
    def _database(self) -> Any:
        return self.rng.choice(self.databases)

    @property
    def _collection(self) -> Any:
        return self._database[self.rng.choice(self.names)]

    def _free(self) -> bool:
        """A prepared transaction locks its collections: DDL on them would wait for ever."""
        return not self.prepared

    def _transaction(self) -> None:
        rng = self.rng
        with self.client.start_session() as session:
            session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=MAJORITY)
            try:
                self._fill(session)
                if rng.random() < 0.5 and self._free():
                    self.crud.single_keys = True
                    self.crud.run(self._collection, rng.randrange(1, 4), session)
                if rng.random() < 0.3 and self._free():
                    born = self._database[f"born{rng.randrange(1000)}"]
                    born.database.create_collection(born.name, session=session)
                    born.create_index("a", session=session)
                    born.insert_one({"_id": 1}, session=session)
                if rng.random() < 0.85:
                    session.commit_transaction()
                else:
                    session.abort_transaction()
            except PyMongoError:
                with contextlib.suppress(PyMongoError):
                    session.abort_transaction()

    def _fill(self, session: ClientSession) -> None:
        rng = self.rng
        for _ in range(rng.randrange(1, 4)):
            collection = self._collection
            fresh = [
                {"_id": f"t{rng.getrandbits(40)}", "n": at} for at in range(rng.randrange(1, 7))
            ]
            collection.insert_many(fresh, session=session)
            first = fresh[0]["_id"]
            collection.update_one({"_id": first}, {"$set": {"a": 1}}, session=session)
            if rng.random() < 0.5:
                collection.delete_one({"_id": fresh[-1]["_id"]}, session=session)

    def _prepare(self) -> None:
        if len(self.prepared) >= 2:
            return
        session = self.client.start_session()
        session.start_transaction(write_concern=MAJORITY)
        try:
            if self.rng.random() < 0.9:
                self._fill(session)
            else:
                self._collection.find_one({"_id": "nothing"}, session=session)
            said = self.client.admin.command(
                "prepareTransaction", 1, session=session, writeConcern={"w": "majority"}
            )
        except PyMongoError:
            with contextlib.suppress(PyMongoError):
                session.abort_transaction()
            session.end_session()
            return
        self.prepared.append((session, said["prepareTimestamp"]))

    def decide(self) -> None:
        """Commit or abort what is prepared."""
        if self.prepared:
            # 4.4 does not wait for the prepare entry to be a majority's.
            self.client.admin.command("appendOplogNote", 1, data={}, writeConcern={"w": "majority"})
        self.rng.shuffle(self.prepared)
        for session, prepared_at in self.prepared:
            if self.rng.random() < 0.75:
                self.client.admin.command(
                    "commitTransaction",
                    1,
                    commitTimestamp=prepared_at,
                    session=session,
                    writeConcern={"w": "majority"},
                )
            else:
                self.client.admin.command(
                    "abortTransaction", 1, session=session, writeConcern={"w": "majority"}
                )
            with contextlib.suppress(PyMongoError):
                session.end_session()
        self.prepared.clear()
