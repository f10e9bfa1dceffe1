"""What a mongos asks of a cluster's servers on an administrator's behalf, asked directly.

One method for each command: to the config server for what concerns the whole cluster,
to a database's primary shard for what concerns a collection. These are the commands
that servers send to each other, as measured on 6.0 and 7.0; every one waits until a
majority has its effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailrace.embedded.catalog import Catalog, Key
from tailrace.embedded.replica_set import ReplicaSet
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
        database, collection = split_namespace(namespace)
        self._ask_primary(
            "_shardsvrCreateCollection", database, collection, shardKey=dict(key), **fields
        )

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

    def _ask_config(self, command: str, value: Any, **fields: Any) -> dict[str, Any]:
        return self.config.primary().command(command, value, **fields, writeConcern=BY_ALL)

    def _ask_primary(
        self, command: str, database: str, value: Any, **fields: Any
    ) -> dict[str, Any]:
        """A command about a database or one of its collections, to its primary shard."""
        place = self.catalog.database(database)
        client = self.shards[place.primary].primary().client
        carried: dict[str, Any] = {"databaseVersion": place.version, "writeConcern": BY_ALL}
        return client[database].command(command, value, **{**fields, **carried})


def split_namespace(namespace: str) -> tuple[str, str]:
    """The database and the collection of ``database.collection``."""
    database, dot, collection = namespace.partition(".")
    if not (database and dot and collection):
        raise OptionError(f"{namespace!r} is not database.collection", option="namespace")
    return database, collection
