"""Random workloads of everything that a replica set logs, from a seeded generator.

Collections with and without images, views, time series, indexes, options, renames,
drops; transactions of several collections, large ones over several entries, prepared
ones committed or aborted by hand, with other writes in between. What the server
refuses is left out: the oracle is what it logged.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pymongo
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern
from tests.support.crud_workload import Crud

MAJORITY = WriteConcern("majority")
STEP_S = 3.0
NAMES = ["one", "two", "three", "od-d.näme"]
SMALL_TRANSACTION_ENTRIES = {"maxNumberOfTransactionOperationsInSingleOplogEntry": 3}
"""Server parameters that make an ordinary transaction span several entries."""


class Workload:
    """Steps on two databases of a replica set of one's own."""

    def __init__(self, client: MongoClient[dict[str, Any]], seed: int, prefix: str) -> None:
        self.rng = random.Random(seed)
        self.client = client
        self.crud = Crud(self.rng)
        self.databases = [client[f"{prefix}_a"], client[f"{prefix}_b"]]
        self.prepared: list[tuple[ClientSession, Any]] = []

    def run(self, steps: int) -> None:
        """Take this many steps, and settle what is prepared."""
        for number in range(steps):
            # The deadline is for what meets a prepared transaction after all.
            with contextlib.suppress(PyMongoError), pymongo.timeout(STEP_S):
                self._step()
            if number % 10 == 9:
                self.decide()
        self.decide()

    def _step(self) -> None:
        steps: list[tuple[Callable[[], None], int]] = [
            (self._writes, 30),
            (self._find_and_modify, 6),
            (self._create, 8),
            (self._drop, 4),
            (self._rename, 5),
            (self._create_index, 5),
            (self._drop_index, 3),
            (self._modify, 5),
            (self._images, 5),
            (self._view, 4),
            (self._series, 2),
            (self._transaction, 12),
            (self._prepare, 5),
            (self._system, 2),
            (self._drop_database, 1),
        ]
        kinds, weights = zip(*steps, strict=True)
        self.rng.choices(kinds, weights)[0]()

    @property
    def _database(self) -> Any:
        return self.rng.choice(self.databases)

    @property
    def _collection(self) -> Any:
        return self._database[self.rng.choice(NAMES)]

    def _free(self) -> bool:
        """A prepared transaction locks its collections: DDL on them would wait for ever."""
        return not self.prepared

    def _writes(self) -> None:
        self.crud.single_keys = bool(self.prepared)
        self.crud.run(self._collection, self.rng.randrange(1, 9))

    def _find_and_modify(self) -> None:
        self.crud.find_and_modify(self._collection)

    def _create(self) -> None:
        rng = self.rng
        options: dict[str, Any] = rng.choice(
            [
                {},
                {"collation": {"locale": "en", "strength": 2}},
                {"changeStreamPreAndPostImages": {"enabled": True}},
                {"capped": True, "size": 4096},
                {"validator": {"a": {"$ne": "refused"}}},
                {"clusteredIndex": {"key": {"_id": 1}, "unique": True}},
            ]
        )
        self._database.create_collection(rng.choice(NAMES), **options)

    def _drop(self) -> None:
        if self._free():
            self._collection.drop()

    def _rename(self) -> None:
        if not self._free():
            return
        rng = self.rng
        source, target = self._collection, self._collection
        self.client.admin.command(
            "renameCollection",
            source.full_name,
            to=target.full_name,
            dropTarget=rng.random() < 0.7,
        )

    def _create_index(self) -> None:
        if self._free():
            field = self.rng.choice(["a", "b", "deep.a", "count"])
            options: dict[str, Any] = self.rng.choice(
                [{}, {"sparse": True}, {"hidden": True}, {"expireAfterSeconds": 10**8}]
            )
            collection = self._collection
            index = {"key": {field: self.rng.choice([1, -1, 1.0])}, "name": f"{field}_", **options}
            collection.database.command("createIndexes", collection.name, indexes=[index])

    def _drop_index(self) -> None:
        if self._free():
            collection = self._collection
            names = [name for name in collection.index_information() if name != "_id_"]
            if names:
                collection.drop_index(self.rng.choice([*names, "*"]))

    def _modify(self) -> None:
        if self._free():
            change: dict[str, Any] = self.rng.choice(
                [
                    {"validator": {"b": {"$ne": self.rng.randrange(9)}}},
                    {"validationLevel": "moderate"},
                    {"index": {"keyPattern": {"a": 1}, "hidden": self.rng.random() < 0.5}},
                ]
            )
            collection = self._collection
            collection.database.command("collMod", collection.name, **change)

    def _images(self) -> None:
        if self._free():
            collection = self._collection
            enabled = self.rng.random() < 0.8
            collection.database.command(
                "collMod", collection.name, changeStreamPreAndPostImages={"enabled": enabled}
            )

    def _view(self) -> None:
        if not self._free():
            return
        database, rng = self._database, self.rng
        action = rng.randrange(3)
        pipeline = [{"$match": {"a": rng.randrange(5)}}]
        if action == 0:
            database.create_collection(f"view{rng.randrange(2)}", viewOn="one", pipeline=pipeline)
        elif action == 1:
            database.command("collMod", "view0", viewOn="two", pipeline=pipeline)
        else:
            database.drop_collection(f"view{rng.randrange(2)}")

    def _series(self) -> None:
        if self._free():
            database = self._database
            if self.rng.random() < 0.6:
                database.create_collection("series", timeseries={"timeField": "at"})
            else:
                database.drop_collection("series")

    def _transaction(self) -> None:
        rng = self.rng
        with self.client.start_session() as session:
            session.start_transaction(read_concern=ReadConcern("snapshot"), write_concern=MAJORITY)
            try:
                self._fill(session)
                if rng.random() < 0.3 and self._free():
                    name = f"born{rng.randrange(1000)}"
                    self._database.create_collection(name, session=session)
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

    def _system(self) -> None:
        scripts = self._database["system.js"]
        key = self.rng.choice(["f", "g"])
        if self.rng.random() < 0.6:
            scripts.replace_one({"_id": key}, {"value": self.rng.randrange(9)}, upsert=True)
        else:
            scripts.delete_one({"_id": key})

    def _drop_database(self) -> None:
        if self._free():
            self.client.drop_database(self._database.name)
