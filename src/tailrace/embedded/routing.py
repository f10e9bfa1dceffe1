"""What a mongos does with a write: find the owner, and send it with its shard's version.

Without a version a shard takes a write for one to an unsharded collection, and its log
then lacks the shard key. A version that is out of date is refused before anything is
done, so the catalog is read again and the write sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from bson.int64 import Int64
from pymongo.errors import OperationFailure

from tailrace.embedded.administration import Administration, split_namespace
from tailrace.embedded.statements import Statement, Writer
from tailrace.engine.sharded.catalog import Key, ShardedCollection
from tailrace.engine.sharded.clock import ClusterClock

STALE_CODES = frozenset({249, 343, 13388})
"""StaleDbVersion, ShardCannotRefreshDueToLocksHeld, StaleConfig."""
RETRY_S = 30.0
RETRY_PAUSE_S = 0.02
HASHED = "hashed"


class Stale(Exception):
    """A shard refused a write because the versions are out of date, and did nothing."""


class Routing(Administration, Writer):
    """Writes that go where they belong, each behind the ones before it in the cluster's time."""

    clock: ClusterClock
    """The cluster's time, which a mongos carries from shard to shard."""

    def targets(self, statement: Statement) -> dict[str, dict[str, Any]]:
        """The shards that a write goes to, and the versions that each must be told."""
        catalog = self.catalog
        namespace = statement.namespace
        if not catalog.is_sharded(namespace):
            return catalog.versions(namespace)
        collection = catalog.collection(namespace)
        complete = statement.verb == "insert"
        if not complete and any(path(statement.values, field) is None for field in collection.key):
            return catalog.versions(namespace)
        shard, version = catalog.target(collection, self._key(collection, statement.values))
        return {shard: {"shardVersion": version}}

    def run(self, statement: Statement) -> int:
        """Send a write to its owner, again while the versions are out of date."""

        def send(shard: str, versions: Mapping[str, Any]) -> int:
            try:
                return self._send(statement, shard, versions)
            except OperationFailure as error:
                if error.code in STALE_CODES:
                    raise Stale from error
                raise

        return self.deliver(statement, send)

    def deliver(self, statement: Statement, send: Callable[[str, Mapping[str, Any]], int]) -> int:
        """Send to every owner once; whoever says ``Stale`` has done nothing, and is asked again.

        As with a mongos, a write to all owners may miss or meet twice what moves meanwhile.
        """
        deadline = time.monotonic() + RETRY_S
        counts: dict[str, int] = {}
        while True:
            try:
                for shard, versions in self.targets(statement).items():
                    if shard not in counts:
                        counts[shard] = send(shard, versions)
                return sum(counts.values())
            except Stale as stale:
                if time.monotonic() > deadline:
                    raise stale.__cause__ or stale from None
                time.sleep(RETRY_PAUSE_S)

    def _send(self, statement: Statement, shard: str, versions: Mapping[str, Any]) -> int:
        database, collection = split_namespace(statement.namespace)
        client = self.shards[shard].primary().client
        with self.clock.session(client) as session:
            answer = client[database].command(
                statement.verb, collection, **{**statement.fields, **versions}, session=session
            )
        for error in answer.get("writeErrors", ()):
            raise OperationFailure(error["errmsg"], error["code"], error)
        return int(answer["n"])

    def _key(self, collection: ShardedCollection, values: Mapping[str, Any]) -> Key:
        return {
            field: self._hash(path(values, field)) if order == HASHED else path(values, field)
            for field, order in collection.key.items()
        }

    def _hash(self, value: Any) -> Int64:
        """The server's own hash; a test command."""
        return Int64(self.config.primary().command("_hashBSONElement", value, seed=0)["out"])


def path(document: Mapping[str, Any], dotted: str) -> Any:
    """The value at a dotted path; None where there is none, as in a shard key."""
    found: Any = document
    for part in dotted.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
