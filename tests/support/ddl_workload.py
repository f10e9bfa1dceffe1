"""Random workloads of everything that a replica set logs, from a seeded generator.

Collections with and without images, views, time series, indexes (also builds that
fail), options, temporary collections, renames, drops; between them writes and the
transactions of ``transaction_workload``. What the server refuses is left out: the
oracle is what it logged.
"""

from __future__ import annotations

import contextlib
import datetime
import random
from collections.abc import Callable
from typing import Any

import pymongo
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from tests.support.crud_workload import Crud
from tests.support.transaction_workload import Transactions

STEP_S = 3.0
NAMES = ["one", "two", "three", "od-d.näme", "a+(b|c)*"]


class Workload(Transactions):
    """Steps on two databases of a replica set of one's own."""

    def __init__(self, client: MongoClient[dict[str, Any]], seed: int, prefix: str) -> None:
        rng = random.Random(seed)
        databases = [client[f"{prefix}_a"], client[f"{prefix}_b"]]
        super().__init__(client, rng, databases, NAMES, Crud(rng))
        major = client.server_info()["versionArray"][0]
        since_6_0 = major >= 6
        self.applies = major >= 5
        """Whether operations are applied by hand: a stream that meets them ends a 4.4."""
        self.images: tuple[str, Callable[[bool], Any]] = (
            ("changeStreamPreAndPostImages", lambda on: {"enabled": on})
            if since_6_0
            else ("recordPreImages", bool)
        )
        """The option that keeps images, and its value for on and off."""

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
            (self._series, 4),
            (self._out, 2),
            (self._capped, 1),
            (self._apply_ops, 2),
            (self._elsewhere, 1),
            (self._transaction, 12),
            (self._prepare, 5),
            (self._system, 2),
            (self._drop_database, 1),
        ]
        kinds, weights = zip(*steps, strict=True)
        self.rng.choices(kinds, weights)[0]()

    def _writes(self) -> None:
        self.crud.single_keys = bool(self.prepared)
        self.crud.run(self._collection, self.rng.randrange(1, 9))

    def _find_and_modify(self) -> None:
        self.crud.find_and_modify(self._collection)

    def _create(self) -> None:
        rng = self.rng
        name, value = self.images
        options: dict[str, Any] = rng.choice(
            [
                {},
                {"collation": {"locale": "en", "strength": 2}},
                {name: value(True)},
                {name: value(True), "capped": True, "size": 8192, "max": 20},
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
        if not self._free():
            return
        rng = self.rng
        options: dict[str, Any] = rng.choice(
            [
                {},
                {"sparse": True},
                {"hidden": True},
                {"expireAfterSeconds": 10**8},
                {"unique": True},  # a build that fails, in the end
                {"partialFilterExpression": {"a": {"$gt": 3}}},
                {"collation": {"locale": "fr"}},
            ]
        )
        indexes = []
        for field in rng.sample(
            ["a", "b", "deep.a", "count", "$**", "words"], rng.choice([1, 1, 2])
        ):
            way: Any = (
                "text" if field == "words" else 1 if field == "$**" else rng.choice([1, -1, 1.0])
            )
            plain = field in ("words", "$**")
            indexes.append({"key": {field: way}, "name": f"{field}_", **({} if plain else options)})
        collection = self._collection
        collection.database.command("createIndexes", collection.name, indexes=indexes)

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
                    {
                        "index": {
                            "name": "b_",
                            "expireAfterSeconds": self.rng.randrange(10**6, 10**7),
                        }
                    },
                    {"validator": {}, "validationAction": "warn"},
                ]
            )
            collection = self._collection
            collection.database.command("collMod", collection.name, **change)

    def _images(self) -> None:
        if self._free():
            collection = self._collection
            name, value = self.images
            change = {name: value(self.rng.random() < 0.8)}
            collection.database.command("collMod", collection.name, **change)

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
        if not self._free():
            return
        database, rng = self._database, self.rng
        what = rng.random()
        if what < 0.4:
            shape: dict[str, Any] = {"timeField": "at", "metaField": "of"}
            database.create_collection("series", timeseries=shape, expireAfterSeconds=10**8)
        elif what < 0.8:
            at = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
            database["series"].insert_many(
                [{"at": at, "of": rng.randrange(3), "n": n} for n in range(rng.randrange(1, 5))]
            )
        elif what < 0.9:
            database.command("collMod", "series", expireAfterSeconds=rng.randrange(10**7, 10**8))
        else:
            database.drop_collection("series")

    def _out(self) -> None:
        """Through a temporary collection, which is renamed, or by writes of the server's own."""
        if not self._free():
            return
        source, target = self._collection, self._collection
        last: dict[str, Any] = self.rng.choice(
            [
                {"$out": {"db": target.database.name, "coll": target.name}},
                {"$merge": {"into": {"db": target.database.name, "coll": target.name}}},
            ]
        )
        source.aggregate([{"$limit": 3}, {"$set": {"through": self.rng.randrange(9)}}, last])

    def _capped(self) -> None:
        if self._free():
            collection = self._collection
            collection.database.command("convertToCapped", collection.name, size=8192)

    def _apply_ops(self) -> None:
        """Operations that somebody applies by hand."""
        if not self.applies:
            return
        collection, rng = self._collection, self.rng
        key = rng.randrange(40)
        operations = [
            {"op": "i", "ns": collection.full_name, "o": {"_id": f"applied{key}", "n": at}}
            for at in range(rng.randrange(1, 4))
        ]
        operations.append({"op": "d", "ns": collection.full_name, "o": {"_id": f"applied{key}"}})
        for operation in operations:
            if rng.random() < 0.2:
                operation["fromMigrate"] = True
        self.client.admin.command("applyOps", operations[: rng.randrange(1, 5)])

    def _elsewhere(self) -> None:
        """Where no stream looks, or only one that asks for it."""
        place = self.rng.choice(["admin", "config", "local"])
        self.client[place][self.rng.choice(NAMES)].insert_one({"n": 1})

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
