"""Clients of shards, made like the client of the cluster that the caller gave.

Where a shard is comes from the cluster; how to connect (TLS, compression, time-outs)
from the caller's own client. Its user is a user of the config servers, and a shard has
users of its own: ``ShardCredentials`` says whose name to use there, the same by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlencode

from pymongo import MongoClient

from tailrace.errors import OptionError

Client = MongoClient[dict[str, Any]]

SCHEME = "mongodb://"
SRV_SCHEME = "mongodb+srv://"
OF_ONE_SERVER = frozenset({"replicaset", "directconnection", "loadbalanced", "srvservicename"})
"""What a connection string says of its own hosts, and not of how to connect."""
LOGIN_OPTIONS = frozenset({"username", "password", "authsource", "authmechanism"})
PLACE = frozenset({"host", "port", "replicaset", "directconnection", "connect"})


@dataclass(frozen=True, slots=True)
class ShardCredentials:
    """Who reads the shards, where it is not the user who reads the config servers."""

    username: str
    password: str = field(repr=False)
    auth_source: str = "admin"
    auth_mechanism: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any] | None) -> ShardCredentials | None:
        """From PyMongo's own names: username, password, authSource, authMechanism."""
        if given is None:
            return None
        names = {"username": "username", "password": "password"}
        names |= {"authSource": "auth_source", "authMechanism": "auth_mechanism"}
        unknown = next((name for name in given if name not in names), None)
        if unknown is not None or "username" not in given or "password" not in given:
            raise OptionError(
                f"shard_credentials take {', '.join(names)}, the first two always",
                option="shard_credentials",
            )
        return cls(**{names[name]: value for name, value in given.items()})


class ShardClients:
    """Makes clients of a cluster's shards, and closes them."""

    def __init__(self, like: Client, credentials: ShardCredentials | None = None) -> None:
        # What MongoClient.__init__ was called with: the only place that has all of it.
        self._given: dict[str, Any] = dict(like._init_kwargs)
        self._credentials = credentials
        self._made: list[Client] = []
        own = like.options.pool_options._credentials
        self.user = credentials.username if credentials else (own.username if own else None)
        """Who reads the shards, as far as a message may say it; None without a login."""

    def open(self, host: str) -> Client:
        """A client of the replica set at ``name/host:port,host:port``."""
        replica_set, slash, hosts = host.partition("/")
        if not slash:
            raise OptionError(f"{host!r} is not replicaSet/host:port", option="host")
        uri = _first(self._given.get("host"))
        kept = {name: value for name, value in self._given.items() if name.lower() not in PLACE}
        if self._credentials is not None:
            kept = {
                name: value for name, value in kept.items() if name.lower() not in LOGIN_OPTIONS
            }
        made: Client = MongoClient(
            uri_for(uri, hosts, self._credentials), **kept, replicaSet=replica_set
        )
        self._made.append(made)
        return made

    def close(self) -> None:
        """Close every client that was made here."""
        for client in self._made:
            client.close()
        self._made.clear()


def uri_for(like: str, hosts: str, credentials: ShardCredentials | None) -> str:
    """A connection string to these hosts, and otherwise like another one."""
    scheme = SRV_SCHEME if like.startswith(SRV_SCHEME) else SCHEME
    rest = like.removeprefix(scheme)
    place, _, query = rest.partition("?")
    login, at, place = place.rpartition("@")
    database = place.partition("/")[2]
    words = [word for word in query.split("&") if word and _name(word) not in OF_ONE_SERVER]
    if credentials is not None:
        login, at = f"{quote(credentials.username, '')}:{quote(credentials.password, '')}", "@"
        words = [word for word in words if _name(word) not in LOGIN_OPTIONS]
        source = {"authSource": credentials.auth_source}
        if credentials.auth_mechanism is not None:
            source["authMechanism"] = credentials.auth_mechanism
        words.append(urlencode(source, quote_via=quote))
    if scheme == SRV_SCHEME:
        names = {_name(word) for word in words}
        words += [] if names & {"tls", "ssl"} else ["tls=true"]
        words += [] if "authsource" in names or not at else ["authSource=admin"]
    return f"{SCHEME}{login}{at}{hosts}/{database}?{'&'.join(words)}"


def _name(word: str) -> str:
    return unquote(word.partition("=")[0]).lower()


def _first(host: Any) -> str:
    """The connection string that a client was made with, or nothing in particular."""
    first = host[0] if isinstance(host, (list, tuple)) and host else host
    text = first if isinstance(first, str) else ""
    return text if text.startswith((SCHEME, SRV_SCHEME)) else ""
