"""What a mongos asks of a cluster's servers on an administrator's behalf, asked directly.

One method for each command: to the config server for what concerns the whole cluster,
to a database's primary shard for what concerns a collection. These are the commands
that servers send to each other, as measured on 6.0 and 7.0; every one waits until a
majority has its effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.embedded.replica_set import ReplicaSet
from tailrace.engine.sharded.catalog import Catalog, Key
from tailrace.errors import OptionError

BY_ALL: Mapping[str, Any] = {"w": "majority", "wtimeout": 60_000}


class Administration:
    """The commands to a cluster's servers."""

    config: ReplicaSet
    """The config server."""
    shards: dict[str, ReplicaSet]
    """The shards by name."""

    @property
    def catalog(self) -> Catalog:
        """What the config server knows."""
        return Catalog(self.config.primary().client)

    def create_database(self, name: str, primary: str | None = None) -> None:
        """Create a database, with its unsharded collections on this shard (the first)."""
        shard = next(iter(self.shards)) if primary is None else primary
        self._ask_config("_configsvrCreateDatabase", name, primaryShardId=shard)

    def drop_database(self, name: str) -> None:
        """Drop a database on every shard."""
        self._ask_primary("_shardsvrDropDatabase", name, 1)

    def shard_collection(self, namespace: str, key: Key, **fields: Any) -> None:
        """Shard a collection, new or empty or on its primary shard, by ranges or hashed."""
        self._ask_about(namespace, "_shardsvrCreateCollection", shardKey=dict(key), **fields)

    def move_range(
        self,
        namespace: str,
        to_shard: str,
        lower: Key | None = None,
        upper: Key | None = None,
    ) -> None:
        """Move the documents from the lower bound up to the upper (None: to the end)."""
        collection = self.catalog.collection(namespace)
        self._ask_config(
            "_configsvrMoveRange",
            namespace,
            toShard=to_shard,
            min=collection.lowest if lower is None else dict(lower),
            max=collection.highest if upper is None else dict(upper),
        )

    def split(self, namespace: str, *points: Key) -> None:
        """Split the range that these keys are in; each becomes a lower bound."""
        catalog = self.catalog
        collection = catalog.collection(namespace)
        whole = catalog.owner(collection, points[0])
        version = catalog.shard_version(collection, whole.shard)
        self.shards[whole.shard].primary().command(
            "splitChunk",
            namespace,
            **{"from": whole.shard},
            keyPattern=collection.key,
            epoch=collection.epoch,
            timestamp=collection.timestamp,
            shardVersion=version,
            min=whole.lower,
            max=whole.upper,
            splitKeys=[dict(point) for point in points],
        )

    def refine(self, namespace: str, key: Key) -> None:
        """Append fields to the shard key; the index for it is made first."""
        self.create_index(namespace, key)
        self._ask_about(namespace, "_shardsvrRefineCollectionShardKey", newShardKey=dict(key))

    def reshard(self, namespace: str, key: Key, chunks: int | None = None, **fields: Any) -> None:
        """Spread a collection anew by another key (half a minute on 7.0, for its own reasons)."""
        if "_presetReshardedChunks" not in fields:
            fields["numInitialChunks"] = len(self.shards) if chunks is None else chunks
        database, _ = split_namespace(namespace)
        self._ask_primary(
            "_shardsvrReshardCollection", database, namespace, "admin", key=dict(key), **fields
        )

    def coll_mod(self, namespace: str, **changes: Any) -> None:
        """Change a collection's options on every shard that has some of it."""
        self._ask_about(namespace, "_shardsvrCollMod", **changes)

    def rename(self, namespace: str, to: str, **fields: Any) -> None:
        """Rename a collection, sharded or not; the new name is a namespace too."""
        self._ask_about(namespace, "_shardsvrRenameCollection", to=to, **fields)

    def drop(self, namespace: str) -> None:
        """Drop a collection, sharded or not."""
        self._ask_about(namespace, "_shardsvrDropCollection")

    def create_index(self, namespace: str, key: Key, **options: Any) -> None:
        """Make an index on every shard that has some of a collection."""
        name = "_".join(f"{field}_{order}" for field, order in key.items())
        self._ask_owners(
            namespace, "createIndexes", indexes=[{"key": dict(key), "name": name, **options}]
        )

    def drop_index(self, namespace: str, name: str) -> None:
        """Drop an index on every shard that has some of a collection."""
        self._ask_owners(namespace, "dropIndexes", index=name)

    def _ask_about(self, namespace: str, command: str, /, **fields: Any) -> dict[str, Any]:
        database, collection = split_namespace(namespace)
        return self._ask_primary(command, database, collection, **fields)

    def _ask_owners(self, namespace: str, command: str, /, **fields: Any) -> None:
        """A plain command, to each shard that has some of a collection."""
        database, collection = split_namespace(namespace)
        for shard, versions in self.catalog.versions(namespace).items():
            client = self.shards[shard].primary().client
            client[database].command(
                command, collection, **{**fields, **versions, "writeConcern": dict(BY_ALL)}
            )

    def _ask_config(self, command: str, value: Any, /, **fields: Any) -> dict[str, Any]:
        return self.config.primary().command(command, value, **fields, writeConcern=BY_ALL)

    def _ask_primary(
        self, command: str, database: str, value: Any, run_on: str | None = None, /, **fields: Any
    ) -> dict[str, Any]:
        """A command about a database or one of its collections, to its primary shard."""
        place = self.catalog.database(database)
        target = self.shards[place.primary].primary().client[run_on or database]
        carried = {"databaseVersion": place.version, "writeConcern": dict(BY_ALL)}
        return target.command(command, value, **{**fields, **carried})


def split_namespace(namespace: str) -> tuple[str, str]:
    """The database and the collection of ``database.collection``."""
    database, dot, collection = namespace.partition(".")
    if not (database and dot and collection):
        raise OptionError(f"{namespace!r} is not database.collection", option="namespace")
    return database, collection
