"""What a cluster's config server knows: databases, sharded collections, and who owns what.

Read anew for every question, since a range may move between two of them. This is the
one place that knows how the ``config`` database is laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId
from bson.binary import Binary
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.timestamp import Timestamp
from pymongo import MongoClient
from pymongo.read_concern import ReadConcern

from tailrace.errors import OptionError

Client = MongoClient[dict[str, Any]]
Key = Mapping[str, Any]
ShardVersion = dict[str, Any]
NOTHING = Timestamp(0, 0)
UNSHARDED: ShardVersion = {"e": ObjectId("0" * 24), "t": NOTHING, "v": NOTHING}
"""The version of every collection that is not sharded."""


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """Where a database's unsharded collections are."""

    name: str
    primary: str
    """The shard that has them, and that takes the commands about the database."""
    version: Mapping[str, Any]
    """What a command must carry, so that a shard knows that its sender is not mistaken."""


@dataclass(frozen=True, slots=True)
class ShardedCollection:
    """A collection that is spread over shards."""

    namespace: str
    uuid: Binary
    key: Key
    epoch: ObjectId
    timestamp: Timestamp

    def version(self, version: Timestamp) -> ShardVersion:
        """What a command must carry to a shard whose newest range has this version."""
        return {"e": self.epoch, "t": self.timestamp, "v": version}

    @property
    def lowest(self) -> dict[str, Any]:
        """The bound below every document."""
        return dict.fromkeys(self.key, MinKey())

    @property
    def highest(self) -> dict[str, Any]:
        """The bound above every document."""
        return dict.fromkeys(self.key, MaxKey())


@dataclass(frozen=True, slots=True)
class OwnedRange:
    """A range of shard keys, the lower bound in and the upper out, and its owner."""

    lower: Key
    upper: Key
    shard: str
    version: Timestamp


class Catalog:
    """The config server's ``config`` database, as questions."""

    def __init__(self, config: Client) -> None:
        self._config = config.get_database("config", read_concern=ReadConcern("majority"))

    def shards(self) -> dict[str, str]:
        """Each shard's name and where it is, in the order of their names."""
        return {shard["_id"]: shard["host"] for shard in self._config.shards.find().sort("_id")}

    def shard_keys(self) -> dict[bytes, Key]:
        """The shard key of every sharded collection, by the collection's UUID."""
        return {bytes(found["uuid"]): found["key"] for found in self._config.collections.find()}

    def removed_since(self, since: datetime) -> list[str]:
        """The shards that were removed since, as far as the change log says."""
        removed = self._config.changelog.find({"what": "removeShard", "time": {"$gte": since}})
        return [str(found["details"].get("shard", found["ns"])) for found in removed]

    def database(self, name: str) -> DatabasePlace:
        """A database that exists."""
        found = self._config.databases.find_one({"_id": name})
        if found is None:
            raise OptionError(f"the cluster has no database {name}", option="database")
        return DatabasePlace(name, found["primary"], found["version"])

    def collection(self, namespace: str) -> ShardedCollection:
        """A collection that is sharded."""
        found = self._config.collections.find_one({"_id": namespace})
        if found is None:
            raise OptionError(f"{namespace} is not sharded", option="namespace")
        return ShardedCollection(
            namespace,
            found["uuid"],
            found["key"],
            found["lastmodEpoch"],
            found["timestamp"],
        )

    def is_sharded(self, namespace: str) -> bool:
        """Whether the config server knows the collection at all."""
        return self._config.collections.find_one({"_id": namespace}) is not None

    def owner(self, collection: ShardedCollection, key: Key) -> OwnedRange:
        """The range that a document with these shard key values (hashes, if hashed) is in."""
        found = self._config.chunks.find_one(
            {"uuid": collection.uuid, "min": {"$lte": key}, "max": {"$gt": key}}
        )
        # The bound above every document is the one that no range has in it.
        return self.ranges(collection.namespace)[-1] if found is None else _range(found)

    def target(self, collection: ShardedCollection, key: Key) -> tuple[str, ShardVersion]:
        """The owner of a key, and a version that this shard had while it owned it.

        A version read after the range moved on would be the shard's newest, and the shard
        would take a write to what it no longer has: so the owner is looked up once more.
        """
        while True:
            shard = self.owner(collection, key).shard
            version = self.shard_version(collection, shard)
            if self.owner(collection, key).shard == shard:
                return shard, version

    def shard_version(self, collection: ShardedCollection, shard: str) -> ShardVersion:
        """What a command about this collection must carry to one shard."""
        newest = self._config.chunks.find_one(
            {"uuid": collection.uuid, "shard": shard}, sort=[("lastmod", -1)]
        )
        return collection.version(NOTHING if newest is None else newest["lastmod"])

    def versions(self, namespace: str) -> dict[str, dict[str, Any]]:
        """Each shard that has some of a collection, and the versions that it must be told."""
        if self.is_sharded(namespace):
            collection = self.collection(namespace)
            owners = sorted({owned.shard for owned in self.ranges(namespace)})
            return {
                shard: {"shardVersion": self.shard_version(collection, shard)} for shard in owners
            }
        place = self.database(namespace.partition(".")[0])
        return {place.primary: {"shardVersion": UNSHARDED, "databaseVersion": place.version}}

    def ranges(self, namespace: str) -> list[OwnedRange]:
        """Every range of a sharded collection, from the lowest to the highest."""
        chunks = self._config.chunks.find({"uuid": self.collection(namespace).uuid}).sort("min")
        return [_range(chunk) for chunk in chunks]


def _range(chunk: Mapping[str, Any]) -> OwnedRange:
    return OwnedRange(chunk["min"], chunk["max"], chunk["shard"], chunk["lastmod"])
