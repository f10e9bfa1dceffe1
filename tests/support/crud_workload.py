"""A random workload of writes to a few collections, from a seeded generator."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from bson.errors import InvalidDocument
from bson.raw_bson import RawBSONDocument
from pymongo import (
    DeleteMany,
    DeleteOne,
    InsertOne,
    ReplaceOne,
    ReturnDocument,
    UpdateMany,
    UpdateOne,
)
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import BulkWriteError, OperationFailure
from tests.support.bson_values import (
    DOTTED_NAMES,
    UNDEFINED_VALUE,
    OldValue,
    Values,
    document_of,
    equals,
)

Write = InsertOne[Any] | ReplaceOne[Any] | UpdateOne | UpdateMany | DeleteOne | DeleteMany


class Crud:
    """Makes writes that mostly hit documents which are there."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values = Values(rng)
        self.ids: list[Any] = []
        self.single_keys = False
        """Whether writes name one key each: a range may reach a prepared key and wait for it."""

    def write(self) -> Write:
        """One write of any kind."""
        kinds = (
            (self._insert, 6),
            (self._replace, 3),
            (self._update, 10),
            (self._pipeline_update, 5),
            (self._update_many, 1),
            (self._delete, 2),
        )
        makers, weights = zip(*kinds, strict=True)
        return self.rng.choices(makers, weights)[0]()

    def run(self, collection: Collection[Any], count: int, session: Any = None) -> None:
        """Send this many writes; what the server refuses does not count as a failure."""
        writes = [self.write() for _ in range(count)]
        with contextlib.suppress(BulkWriteError, InvalidDocument):
            collection.bulk_write(writes, ordered=False, session=session)

    def find_and_modify(self, collection: Collection[Any]) -> None:
        """A retryable findAndModify, whose image the server keeps."""
        back = self.rng.choice([ReturnDocument.BEFORE, ReturnDocument.AFTER])
        with contextlib.suppress(OperationFailure):
            if self.rng.random() < 0.3:
                collection.find_one_and_delete(self._query())
            else:
                collection.find_one_and_update(
                    self._query(), self._modifiers(), return_document=back, upsert=True
                )

    def _known_id(self) -> Any:
        if self.ids and self.rng.random() < 0.95:
            return self.rng.choice(self.ids[-60:])
        return self.values.id()

    def _query(self) -> RawBSONDocument:
        return equals(self._known_id())

    def _some(self, count: int) -> dict[str, Any]:
        keys = [self._known_id() for _ in range(count)]
        return {"_id": {"$in": [key for key in keys if not isinstance(key, OldValue)]}}

    def _insert(self) -> InsertOne[Any]:
        key = self.values.id()
        self.ids.append(key)
        document = {**self.values.document(), "_id": key}
        if self.rng.random() < 0.05:
            document["undefined"] = UNDEFINED_VALUE
        if self.rng.random() < 0.5:
            document["tags"] = [self.values.value(1) for _ in range(8)]
            document["deep"] = {"a": {"b": [1, 2, {"c": 3}]}, "0": {"1": 2}}
        return InsertOne(document_of(document))

    def _replace(self) -> ReplaceOne[Any]:
        document = {
            name: value
            for name, value in self.values.document().items()
            if not name.startswith("$")
        }
        return ReplaceOne(self._query(), document, upsert=self.rng.random() < 0.3)

    def _update(self) -> UpdateOne:
        return UpdateOne(self._query(), self._modifiers(), upsert=self.rng.random() < 0.1)

    def _update_many(self) -> Write:
        if self.single_keys:
            return self._update()
        return UpdateMany(self._some(4), self._modifiers())

    def _delete(self) -> DeleteOne | DeleteMany:
        if self.rng.random() < 0.2 and not self.single_keys:
            return DeleteMany(self._some(3))
        return DeleteOne(self._query())

    def _modifiers(self) -> dict[str, Any]:
        values, rng = self.values, self.rng
        choices: list[dict[str, Any]] = [
            {"$set": {values.path(): values.value() for _ in range(rng.randrange(1, 4))}},
            {"$unset": {values.path(): ""}},
            {"$set": {"deep.a.b.1": values.scalar()}, "$unset": {"deep.0.1": ""}},
            {"$inc": {rng.choice(["count", "deep.a.n", "tags.1"]): rng.choice([1, 1.5, -3])}},
            {"$push": {"tags": {"$each": [values.value(1)], "$slice": rng.choice([3, -2, 5])}}},
            {"$push": {rng.choice(["tags", "deep.a.b"]): values.value(1)}},
            {"$pop": {"tags": rng.choice([1, -1])}},
            {"$pull": {"tags": {"$in": [0, 1, "a", None]}}},
            {"$addToSet": {"tags": values.scalar()}},
            {"$rename": {rng.choice(["a", "b"]): rng.choice(["c", "moved", "deep.z"])}},
            {"$min": {"count": rng.randrange(10)}},
            {"$currentDate": {"at": True}},
            {"$set": {"tags.$[]": values.scalar()}},
            {"$setOnInsert": {"born": True}, "$set": {"a": values.value()}},
        ]
        return rng.choice(choices)

    def _pipeline_update(self) -> UpdateOne:
        values, rng = self.values, self.rng
        literal = {"$literal": values.value()}
        choices: list[list[dict[str, Any]]] = [
            [{"$set": {values.rng.choice(["a", "b", "deep.a"]): literal}}],
            [{"$unset": rng.choice(["a", "tags", "deep.a.b"])}],
            [{"$set": {"tags": {"$slice": [{"$ifNull": ["$tags", []]}, rng.randrange(1, 6)]}}}]
            if rng.random() < 0.9
            else [{"$set": {"tags": []}}],
            [
                {
                    "$replaceWith": {
                        "$setField": {
                            "field": {"$literal": rng.choice(DOTTED_NAMES)},
                            "input": "$$ROOT",
                            "value": literal,
                        }
                    }
                }
            ],
            [{"$replaceWith": {"_id": "$_id", "a": "$a", "new": literal}}],
            [
                {
                    "$replaceWith": {
                        "$setField": {
                            "field": "",
                            "input": "$$ROOT",
                            "value": {"a": literal, "long": "x" * 40, "1": [1, 2, {"": literal}]},
                        }
                    }
                }
            ],
            [{"$set": {"deep": {"a": {"b": {"$concatArrays": [[1, 2], [literal]]}}}}}],
        ]
        return UpdateOne(self._query(), rng.choice(choices))


def run_crud(database: Database[Any], seed: int, operations: int) -> None:
    """A whole workload over three collections, in commands of a few writes."""
    rng = random.Random(seed)
    crud = Crud(rng)
    while operations > 0:
        collection = database[rng.choice(["one", "two", "od-d.näme"])]
        count = min(operations, rng.randrange(1, 40))
        crud.run(collection, count)
        operations -= count
        if rng.random() < 0.2:
            crud.find_and_modify(collection)
