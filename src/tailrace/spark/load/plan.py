"""What a load reads: the collections, and where each is split.

Split points are sampled ``_id`` values in the server's own order, whatever their types:
the server takes random samples from the index, and reads no collection for them. What
cannot be followed is named with the reason, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bson
from bson import json_util
from pymongo import MongoClient
from pymongo.errors import ConfigurationError, OperationFailure, PyMongoError

from tailrace.errors import OptionError, PrivilegeError
from tailrace.oplog.deployment import Deployment

OWN_DATABASES = frozenset(("admin", "config", "local"))
RANGE_BYTES = 32 << 20
"""A range is kept in memory while it is read."""
SAMPLES_PER_RANGE = 16
SAMPLED_AT_MOST = 0.04
"""Past a twentieth of a collection the server sorts all of it instead of sampling."""
FEWEST_TO_SPLIT = 2_000
MOST_RANGES = 4_096
LEFT_OUT = {
    "view": "a view has no documents of its own",
    "timeseries": "a time-series collection is stored in buckets, not in its documents",
}
CAPPED = "a capped collection allows no snapshot reads"

Client = MongoClient[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """A collection of the source; ``left_out`` is why it cannot be followed."""

    namespace: str
    uuid: str
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """How one collection is read: its ranges lie between the splits."""

    namespace: str
    uuid: str
    splits: tuple[bytes, ...]
    """``{_id: value}`` documents, in the server's order."""

    @property
    def ranges(self) -> list[tuple[bytes | None, bytes | None]]:
        """The bounds of each range; None where it is open."""
        return list(zip((None, *self.splits), (*self.splits, None), strict=True))

    @property
    def document(self) -> dict[str, Any]:
        """What ``control`` keeps of it."""
        splits = [json_util.dumps(bson.decode(each), json_options=_EXACT) for each in self.splits]
        return {"uuid": self.uuid, "splits": splits}

    @classmethod
    def parse(cls, namespace: str, kept: Mapping[str, Any]) -> CollectionPlan:
        """The plan that ``control`` kept."""
        splits = (
            bson.encode(json_util.loads(each, json_options=_EXACT)) for each in kept["splits"]
        )
        return cls(namespace, kept["uuid"], tuple(splits))


_EXACT = json_util.CANONICAL_JSON_OPTIONS


def client_of(uri: str) -> Client:
    """A client of the deployment behind a URI, whose login no error repeats."""
    try:
        return MongoClient(uri, appname="tailrace")
    except (PyMongoError, ConfigurationError, ValueError) as error:
        raise OptionError(
            f"SOURCE_URI is no connection string: {type(error).__name__}", option="SOURCE_URI"
        ) from None


def find_collections(deployment: Deployment, included: Callable[[str], bool]) -> list[Found]:
    """The collections that are asked for, by name."""
    found = []
    databases = deployment.ask(
        deployment.client.list_database_names,
        "listDatabases on the cluster, as readAnyDatabase has",
    )
    for database in sorted(set(databases) - OWN_DATABASES):
        for each in _collections_of(deployment, database):
            namespace = f"{database}.{each['name']}"
            if each["name"].startswith("system.") or not included(namespace):
                continue
            capped = CAPPED if each.get("options", {}).get("capped") else ""
            uuid = each.get("info", {}).get("uuid", b"")
            found.append(Found(namespace, uuid.hex(), LEFT_OUT.get(each["type"], capped)))
    return sorted(found, key=lambda each: each.namespace)


def _collections_of(deployment: Deployment, database: str) -> list[Mapping[str, Any]]:
    return deployment.ask(
        lambda: list(deployment.client[database].list_collections()), f"the role read on {database}"
    )


def plan_collection(deployment: Deployment, found: Found) -> CollectionPlan:
    """Split a collection into ranges of about the same size."""
    database, _, name = found.namespace.partition(".")
    collection = deployment.client[database][name]
    grant = f"the role read on {database}"

    def measure() -> Mapping[str, Any]:
        return deployment.client[database].command("collStats", name)

    stats = deployment.ask(measure, grant)
    count, wanted = int(stats["count"]), min(MOST_RANGES, int(stats["size"]) // RANGE_BYTES + 1)
    samples = min(wanted * SAMPLES_PER_RANGE, int(count * SAMPLED_AT_MOST))
    if wanted == 1 or count < FEWEST_TO_SPLIT or samples < wanted:
        return CollectionPlan(found.namespace, found.uuid, ())
    pipeline: list[dict[str, Any]] = [
        {"$sample": {"size": samples}},
        {"$project": {"_id": 1}},
        {"$sort": {"_id": 1}},
    ]
    keys = deployment.ask(
        lambda: [bson.encode(each) for each in collection.aggregate(pipeline)], grant
    )
    return CollectionPlan(found.namespace, found.uuid, tuple(chosen(keys, wanted)))


def chosen(keys: Sequence[bytes], ranges: int) -> list[bytes]:
    """Evenly spaced samples as splits; a value that came twice splits once."""
    step = len(keys) / ranges
    splits = [keys[int(step * number)] for number in range(1, ranges)]
    return [key for at, key in enumerate(splits) if at == 0 or key != splits[at - 1]]


def namespace_of(client: Client, uuid: str, hint: str) -> str | None:
    """Where a collection is now; None when it is gone. ``hint`` is where it was last."""
    database, _, name = hint.partition(".")
    if _has(client, database, uuid, {"name": name}):
        return hint
    for other in client.list_database_names():
        if other not in OWN_DATABASES and (now := _has(client, other, uuid, {})):
            return f"{other}.{now}"
    return None


def _has(client: Client, database: str, uuid: str, among: Mapping[str, Any]) -> str | None:
    try:
        for each in client[database].list_collections(filter=among):
            if each.get("info", {}).get("uuid", b"").hex() == uuid:
                return str(each["name"])
    except OperationFailure as error:
        raise PrivilegeError(
            f"the collections of {database} cannot be listed: grant the role read on {database}",
            grant=f"the role read on {database}",
        ) from error
    return None
