"""A MongoDB sharded cluster that exists while it is used: config server and shards.

There is no mongos: what one would ask of the servers is sent to them directly, by the
methods that come from ``Administration`` and ``Routing``. Each member is a replica set of its own,
and can be killed, frozen or stepped down as one.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tailrace.embedded.folder import ServerFolder
from tailrace.embedded.lifetime import Lifetime
from tailrace.embedded.mongod import Role
from tailrace.embedded.replica_set import ReplicaSet
from tailrace.embedded.routing import Routing
from tailrace.embedded.security import Security, make_security
from tailrace.embedded.shard_stream import ShardStream
from tailrace.embedded.transactions import Transaction
from tailrace.engine.sharded.clock import ClusterClock
from tailrace.errors import OptionError, OutcomeUnknown

CONFIG = "config"
REMOVAL_S = 60.0
REMOVAL_PAUSE_S = 0.1
PARAMETERS: dict[str, object] = {
    "orphanCleanupDelaySecs": 0,  # a moved range's old documents go at once, not after 15 min
    "reshardingMinimumOperationDurationMillis": 0,  # as against 5 min
}


class ShardedCluster(Routing, Lifetime):
    """A sharded cluster of throw-away servers."""

    def __init__(
        self,
        shards: int = 2,
        *,
        nodes: int = 1,
        port: int | None = None,
        auth: bool = False,
        tls: bool = False,
        **options: Any,
    ) -> None:
        if shards < 1:
            raise OptionError("a cluster has at least one shard", option="shards")
        parameters = {**PARAMETERS, **options.pop("parameters", {})}
        self._options = {"nodes": nodes, **options, "parameters": parameters}
        self._wants_security = {"auth": auth, "tls": tls}
        self._security = Security()
        self.clock = ClusterClock()
        self._removed: list[ReplicaSet] = []
        self._folder: ServerFolder | None = None
        self.config = self._member(CONFIG, "configsvr", port=port)
        self.shards: dict[str, ReplicaSet] = {
            name: self._member(name, "shardsvr")
            for name in (f"s{number}" for number in range(1, shards + 1))
        }

    def _member(self, name: str, role: Role, **options: Any) -> ReplicaSet:
        return ReplicaSet(replica_set=name, role=role, **{**self._options, **options})

    def __repr__(self) -> str:
        return f"ShardedCluster({list(self.shards)})"

    def start(self) -> None:
        """Start every server at once, then tell the config server of the shards."""
        try:
            self._folder = ServerFolder("cluster")
            self._security = make_security(self._folder.path, **self._wants_security)
            with ThreadPoolExecutor(len(self.shards) + 1) as pool:
                members = [self.config, *self.shards.values()]
                list(pool.map(lambda member: member.start(self._security), members))
            for shard in self.shards.values():
                self._join(shard)
        except BaseException:
            self.close()
            raise

    def add_shard(self, name: str | None = None, **options: Any) -> ReplicaSet:
        """Start a new shard and add it; its options may differ from the others'."""
        name = name or f"s{len(self.shards) + 1}"
        if name in self.shards:
            raise OptionError(f"there is a shard {name} already", option="name")
        shard = self._member(name, "shardsvr", **options)
        self.shards[name] = shard
        shard.start(self._security)
        self._join(shard)
        return shard

    def remove_shard(self, name: str) -> None:
        """Take a shard that has no ranges and no databases out of the cluster; it runs on."""
        deadline = time.monotonic() + REMOVAL_S
        while self._ask_config("_configsvrRemoveShard", name)["state"] != "completed":
            if time.monotonic() > deadline:
                raise OutcomeUnknown(f"shard {name} is not drained")
            time.sleep(REMOVAL_PAUSE_S)
        self._removed.append(self.shards.pop(name))

    def transaction(self) -> Transaction:
        """A transaction over shards, to be used in a ``with`` statement."""
        return Transaction(self)

    def shard_stream(self, shard: str, namespace: str | None = None, **options: Any) -> ShardStream:
        """A shard's change stream as a mongos opens it; the caller closes it."""
        primary = self.shards[shard].primary()
        return ShardStream(primary, namespace, options, version=self.version)

    def _join(self, shard: ReplicaSet) -> None:
        self._ask_config("_configsvrAddShard", f"{shard.name}/{shard.hosts}", name=shard.name)

    @property
    def version(self) -> str:
        """The servers' version."""
        return self.config.version

    @property
    def uri(self) -> str:
        """The config server's connection string: from there the shards can be found."""
        return self.config.uri

    @property
    def running(self) -> bool:
        """Whether the process of every node is there."""
        return all(member.running for member in (self.config, *self.shards.values()))

    def description(self) -> list[str]:
        """What somebody who uses it by hand wants to know, line by line."""
        what = f"MongoDB {self.version}, config server of {len(self.shards)} shards (no mongos)"
        shards = [f"shard {name}: {shard.uri_as(None)}" for name, shard in self.shards.items()]
        return [what, *shards, *(f"log: {log}" for log in self.logs())]

    def logs(self) -> list[str]:
        """Where the nodes write their logs."""
        return [log for member in (self.config, *self.shards.values()) for log in member.logs()]

    def close(self) -> None:
        """End all of it, and remove its folders."""
        for member in (self.config, *self.shards.values(), *self._removed):
            member.close()
        if self._folder is not None:
            self._folder.close()
