"""What a live source is: its version, its parameters, how far it has got.

Asked once, when a stream is opened. Only a member of a replica set has an oplog: a
mongos and a standalone are refused. A user who may not read server parameters gets
their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pymongo.errors import OperationFailure

from tailrace.errors import ServerError, UnsupportedSource
from tailrace.event.shape import PARAMETERS, Version, parse_version
from tailrace.oplog.deployment import Deployment, is_passing
from tailrace.query.pipeline import encoded_value
from tailrace.query.values import Value
from tailrace.stage.scope import Kind, Scope

NO_REPLICA_SET = 40573
"""The server's code for a change stream on a standalone."""
ON_A_VIEW = 166
LOGIN = "a role, any will do: hello and buildInfo need no more"


@dataclass(frozen=True, slots=True)
class Source:
    """A replica set's member, as it was when it was asked."""

    version: Version
    applied: int
    """The time of the last entry that it had applied."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[bytes, Value] = field(default_factory=dict)
    """``NOW`` and ``CLUSTER_TIME``, as they were then."""
    name: str = ""
    """The replica set's."""


def greet(deployment: Deployment) -> Mapping[str, Any]:
    """What a deployment says of itself."""
    return deployment.ask(lambda: _admin(deployment, "hello"), LOGIN)


def is_mongos(said: Mapping[str, Any]) -> bool:
    """Whether a greeting is a router's."""
    return said.get("msg") == "isdbgrid"


def is_config_server(said: Mapping[str, Any]) -> bool:
    """Whether a greeting is that of a sharded cluster's config server."""
    return "configsvr" in said


def probe(deployment: Deployment, *, is_catalog: bool = False) -> Source:
    """Ask a replica set what it is; an error when it is no such thing.

    A config server is one, but whoever names it means the cluster, of which it is not a
    part with documents: it must be asked for as the catalog.
    """
    said = greet(deployment)
    if is_config_server(said) and not is_catalog:
        raise UnsupportedSource(
            "this is the config server of a sharded cluster, and only a stream (tailrace watch, "
            "open_oplog) can be read from a whole cluster: name one of its shards"
        )
    if is_mongos(said):
        raise UnsupportedSource("a mongos has no oplog: connect to the shards' replica sets")
    if "setName" not in said:
        raise UnsupportedSource(
            "The $changeStream stage is only supported on replica sets", code=NO_REPLICA_SET
        )
    build = deployment.ask(lambda: _admin(deployment, "buildInfo"), LOGIN)
    applied = said["lastWrite"]["opTime"]["ts"]
    return Source(
        parse_version(str(build["version"])),
        applied.time << 32 | applied.inc,
        {name: _parameter(deployment, name) for name in PARAMETERS},
        _variables(said),
        str(said["setName"]),
    )


def _variables(said: Mapping[str, Any]) -> dict[bytes, Value]:
    """What a server's greeting says of the variables that it gives to pipelines."""
    found = {}
    if "localTime" in said:
        found[b"NOW"] = encoded_value("NOW", said["localTime"])
    if "$clusterTime" in said:
        found[b"CLUSTER_TIME"] = encoded_value("NOW", said["$clusterTime"]["clusterTime"])
    return found


def check_collection(deployment: Deployment, scope: Scope) -> None:
    """The error of a stream on what is a view, as every time-series collection is."""
    if scope.kind is not Kind.COLLECTION:
        return
    database, name = scope.database.decode(), scope.collection.decode()

    def ask() -> list[dict[str, Any]]:
        said = deployment.client[database].command(
            "listCollections",
            1,
            filter={"name": name},
            nameOnly=True,
            authorizedCollections=True,
            read_preference=deployment.read_preference,
        )
        found: list[dict[str, Any]] = said["cursor"]["firstBatch"]
        return found

    kinds = {"view": "view", "timeseries": "timeseries collection"}
    for found in deployment.ask(ask, f"the role read on {database}"):
        if found["type"] in kinds:
            raise ServerError(
                f"Namespace {scope} is a {kinds[found['type']]}, not a collection", code=ON_A_VIEW
            )


def _parameter(deployment: Deployment, name: str) -> object:
    """A server parameter; None where this server has no such thing, or does not show it."""

    def ask() -> Mapping[str, Any]:
        try:
            return _admin(deployment, "getParameter", **{name: 1})
        except OperationFailure as error:
            if is_passing(error):
                raise
            return {}

    value = deployment.ask(ask, LOGIN).get(name)
    return value.get("value") if isinstance(value, Mapping) else value


def _admin(deployment: Deployment, command: str, **fields: Any) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = deployment.client.admin.command(
        command, 1, read_preference=deployment.read_preference, **fields
    )
    return answer
