"""What a deployment allows and has: each thing that following it needs, tried once.

Every finding says whether it is good, and if not, who must do what: a privilege that is
missing is named as the role that gives it. Reading more than this needs no other rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure

from tailrace.engine.source import Source, probe
from tailrace.errors import PrivilegeError, TailraceError
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.tail import Tail

IDENTITY_GRANT = "the role clusterMonitor on the database admin"
"""What lets a user read ``local.system.replset``; ``read`` on local leaves it out."""
TRANSACTIONS_GRANT = "the role read on the database config (the collection transactions)"
SHORT_WINDOW_H = 24
FIRST_WITH_SNAPSHOTS = (5, 0)
OWN_DATABASES = frozenset(("admin", "config", "local"))


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``good`` is None where it only might matter."""

    name: str
    good: bool | None
    said: str


def examine(client: MongoClient[Any]) -> Iterator[Finding]:
    """Look at a deployment, from whether it answers on; the first wall ends it."""
    deployment = Deployment(client)
    try:
        source = probe(deployment)
    except TailraceError as error:
        yield Finding("source", False, str(error))
        return
    yield _version(source)
    yield _topology(client)
    for name, look in _LOOKS.items():
        try:
            yield from look(deployment)
        except PrivilegeError as error:
            yield Finding(name, False, f"not allowed: grant {error.grant}")
        except TailraceError as error:
            yield Finding(name, False, str(error))


def _version(source: Source) -> Finding:
    said = "MongoDB " + ".".join(map(str, source.version))
    if source.version < FIRST_WITH_SNAPSHOTS:
        return Finding("version", False, f"{said}: a load needs 5.0 or newer; --no-load does not")
    return Finding("version", True, said)


def _topology(client: MongoClient[Any]) -> Finding:
    hello = client.admin.command("hello")
    members = len(hello.get("hosts", ()))
    return Finding(
        "topology",
        True,
        f"replica set {hello['setName']}, {members} members, primary "
        f"{hello.get('primary', 'unknown')}",
    )


def _oplog(deployment: Deployment) -> Iterator[Finding]:
    oldest, newest = Tail(deployment, 0).bounds()
    hours = ((newest >> 32) - (oldest >> 32)) / 3600
    good = True if hours >= SHORT_WINDOW_H else None
    note = "" if good else f"; a longer stop means a new load ({SHORT_WINDOW_H} h is safer)"
    yield Finding("oplog", good, f"a window of {hours:.1f} hours{note}")


def read_identity(deployment: Deployment) -> Mapping[str, Any]:
    """The set's own configuration; ``settings.replicaSetId`` in it is like no other set's."""
    find = deployment.client.local["system.replset"].find_one
    return deployment.ask(find, IDENTITY_GRANT) or {}


def check_readable(deployment: Deployment) -> None:
    """The error of a user who may not read what following a set takes."""
    for look in (_oplog, _identity, _transactions):
        for _ in look(deployment):
            pass


def _identity(deployment: Deployment) -> Iterator[Finding]:
    read_identity(deployment)
    yield Finding("identity", True, "the set's own id can be read")


def _transactions(deployment: Deployment) -> Iterator[Finding]:
    transactions = deployment.client.get_database("config").get_collection("transactions")
    deployment.ask(transactions.find_one, TRANSACTIONS_GRANT)
    yield Finding("transactions", True, "those that are still undecided can be seen")


def _collections(deployment: Deployment) -> Iterator[Finding]:
    client = deployment.client
    grant = "the role readAnyDatabase on the database admin, or read on each database"
    names = deployment.ask(client.list_database_names, grant)
    count, with_images = 0, 0
    for database in sorted(set(names) - OWN_DATABASES):
        found = deployment.ask(
            _listing(client, database), f"the role read on the database {database}"
        )
        plain = [each for each in found if each["type"] == "collection"]
        count += len(plain)
        with_images += sum(1 for each in plain if _has_images(each))
        if plain:
            first = client[database][plain[0]["name"]]
            deployment.ask(first.find_one, f"the role read on the database {database}")
    yield Finding("collections", True, f"{count} can be read")
    yield Finding("images", True, f"{with_images} collections keep pre-images (not needed)")


def _listing(client: MongoClient[Any], database: str) -> Callable[[], list[Mapping[str, Any]]]:
    return lambda: list(client[database].list_collections())


def _has_images(found: Mapping[str, Any]) -> bool:
    return bool(found.get("options", {}).get("changeStreamPreAndPostImages", {}).get("enabled"))


def _history(deployment: Deployment) -> Iterator[Finding]:
    name = "minSnapshotHistoryWindowInSeconds"
    try:
        said = deployment.client.admin.command(
            "getParameter", 1, check=True, minSnapshotHistoryWindowInSeconds=1
        )
    except OperationFailure:
        yield Finding("history", None, "how long snapshots are kept may not be read (300 s)")
        return
    yield Finding("history", True, f"snapshots are kept for {said[name]} s")


_LOOKS: dict[str, Callable[[Deployment], Iterator[Finding]]] = {
    "oplog": _oplog,
    "identity": _identity,
    "transactions": _transactions,
    "collections": _collections,
    "history": _history,
}
