"""What the benchmarks write: one function for each verb, on documents of 330 bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pymongo import ReplaceOne
from pymongo.collection import Collection

BATCH = 10_000
TRANSACTION = 100
"""Inserts in one transaction."""
TEXT = "x" * 180

Target = Collection[dict[str, Any]]


def document(number: int) -> dict[str, Any]:
    """A document like many: an identifier, some numbers, some text, something nested."""
    return {
        "_id": number,
        "name": f"customer {number}",
        "amount": number * 1.25,
        "tags": ["new", "web"],
        "address": {"street": "Main Street 1", "city": "Springfield", "zip": 12345},
        "text": TEXT,
    }


def fill(collection: Target, verb: str, count: int) -> None:
    """What must be there before the verb is measured."""
    collection.database.create_collection(collection.name)
    if verb in ("update", "replace", "delete"):
        insert(collection, count)


def insert(collection: Target, count: int) -> None:
    """Inserts, in batches."""
    for numbers in _batches(count):
        collection.insert_many(map(document, numbers), ordered=True)


def update(collection: Target, _count: int) -> None:
    """One multi-update that changes three fields, one of them nested: ``$v: 2`` diffs."""
    changes = {"amount": 1, "address.zip": 54321, "state": "changed"}
    collection.update_many({}, {"$set": changes})


def replace(collection: Target, count: int) -> None:
    """Replacements by other documents of the same size."""
    for numbers in _batches(count):
        collection.bulk_write(
            [ReplaceOne({"_id": each}, {**document(each), "amount": -1}) for each in numbers]
        )


def delete(collection: Target, _count: int) -> None:
    """One delete of everything."""
    collection.delete_many({})


def transactions(collection: Target, count: int) -> None:
    """Transactions of a hundred inserts."""
    with collection.database.client.start_session() as session:
        for first in range(0, count, TRANSACTION):
            numbers = range(first, min(first + TRANSACTION, count))
            with session.start_transaction():
                collection.insert_many(map(document, numbers), session=session)


VERBS: dict[str, Callable[[Target, int], None]] = {
    "insert": insert,
    "update": update,
    "replace": replace,
    "delete": delete,
    "transactions": transactions,
}
"""A verb to what writes so many events of it."""


def _batches(count: int) -> Iterator[range]:
    return (range(first, min(first + BATCH, count)) for first in range(0, count, BATCH))
