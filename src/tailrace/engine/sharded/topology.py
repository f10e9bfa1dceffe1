"""Where a cluster's shards are: from a mongos, from a config server, or as they are listed.

The config servers know every shard, and say when one comes or goes; whoever only lists
shards has to know himself that there are no others. A mongos is asked where the config
servers are (unchecked: no mongos was to be had). Nothing is written anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import MongoClient

from tailrace.engine.sharded.catalog import Catalog
from tailrace.engine.sharded.clients import ShardClients, ShardCredentials
from tailrace.engine.source import greet, is_mongos, probe
from tailrace.errors import OptionError, PrivilegeError, UnsupportedSource
from tailrace.oplog.deployment import Deployment

Client = MongoClient[dict[str, Any]]
CONFIG_GRANT = "the role clusterMonitor, or read on config, on the config servers"
SHARD_MAP_GRANT = "the role clusterMonitor"


class Topology:
    """A cluster's servers, as they were found; may open shards that come later."""

    def __init__(
        self,
        config: Deployment | None,
        shards: dict[str, Deployment],
        clients: ShardClients | None = None,
        read_preference: Any = None,
        own: Client | None = None,
        found_at: int = 0,
    ) -> None:
        self.config = config
        """The config servers; None for shards that were listed."""
        self.shards = shards
        self.found_at = found_at
        """A time of the config servers' log: what changed since, the log says."""
        self._clients = clients
        self._read_preference = read_preference
        self._own = own

    @property
    def user(self) -> str | None:
        """Who reads the shards; None where that is not known."""
        return self._clients.user if self._clients else None

    def open_shard(self, name: str, host: str) -> Deployment:
        """A shard of the cluster, by its host."""
        if self._clients is None:
            raise UnsupportedSource(f"shard {name} joined, and only the listed shards are known")
        client = self._clients.open(host)
        self.shards[name] = Deployment(client, self._read_preference)
        return self.shards[name]

    def close(self) -> None:
        """Close what was opened here; the caller's own clients stay open."""
        for deployment in (*self.shards.values(), *((self.config,) if self.config else ())):
            deployment.close()
        if self._clients is not None:
            self._clients.close()
        if self._own is not None:
            self._own.close()


def listed(shards: Mapping[str, Client], read_preference: Any = None) -> Topology:
    """The shards that the caller names, and no others."""
    if not shards:
        raise OptionError("one shard at least is needed", option="client")
    return Topology(
        None, {name: Deployment(client, read_preference) for name, client in shards.items()}
    )


def named(clients: Sequence[Client]) -> dict[str, Client]:
    """These shards by the names that their cluster gave them, or that their sets have."""
    return {_name(client): client for client in clients}


def _name(client: Client) -> str:
    deployment = Deployment(client)
    said = greet(deployment)
    if "setName" not in said:
        raise UnsupportedSource("a shard is a replica set, and this is none")
    try:
        identity = deployment.ask(
            lambda: client.admin["system.version"].find_one({"_id": "shardIdentity"}),
            "read on admin",
        )
    except PrivilegeError:
        identity = None
    return str(identity["shardName"] if identity else said["setName"])


def discovered(
    client: Client,
    said: Mapping[str, Any],
    read_preference: Any = None,
    credentials: ShardCredentials | None = None,
) -> Topology:
    """The shards of the cluster that a mongos or a config server belongs to."""
    own: Client | None = None
    if is_mongos(said):
        asked = Deployment(client)
        answer = asked.ask(lambda: client.admin.command("getShardMap"), SHARD_MAP_GRANT)
        own = ShardClients(client).open(str(answer["map"]["config"]))
        client = own
    config = Deployment(client)
    found_at = probe(config).applied
    catalog = Catalog(client)
    hosts = config.ask(catalog.shards, CONFIG_GRANT)
    if not hosts:
        raise UnsupportedSource("the cluster has no shards")
    clients = ShardClients(client, credentials)
    topology = Topology(config, {}, clients, read_preference, own, found_at)
    for name, host in hosts.items():
        topology.open_shard(name, host)
    return topology
