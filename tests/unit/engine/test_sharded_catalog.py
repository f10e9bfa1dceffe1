"""A write's owner and version are read one after the other, and a range may move between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bson import Timestamp

from tailrace.engine.sharded.catalog import Catalog, OwnedRange


class MovingRange(Catalog):
    """A catalog in which each look finds the next of these owners."""

    def __init__(self, *owners: str) -> None:
        self._owners: Iterator[str] = iter(owners)

    def owner(self, collection: Any, key: Any) -> OwnedRange:
        return OwnedRange({}, {}, next(self._owners), Timestamp(1, 1))

    def shard_version(self, collection: Any, shard: str) -> dict[str, Any]:
        return {"of": shard}


def test_an_owner_that_stays_is_the_target() -> None:
    assert MovingRange("s1", "s1").target(None, {}) == ("s1", {"of": "s1"})


def test_an_owner_that_lost_the_range_meanwhile_is_not_the_target() -> None:
    catalog = MovingRange("s1", "s2", "s2", "s2")
    assert catalog.target(None, {}) == ("s2", {"of": "s2"})
