"""A transaction over several shards, committed by its coordinator or by hand.

The first shard that it writes to is the coordinator. ``commit`` lets that one do the
two phases; ``prepare`` and ``commit_prepared`` are the phases by themselves, so that a
test can stand between them. Raw connections carry it, since the same session stands on
every shard, which no client can have.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from bson.binary import Binary
from bson.int64 import Int64
from bson.timestamp import Timestamp

from tailrace.embedded.administration import BY_ALL, split_namespace
from tailrace.embedded.routing import STALE_CODES, Routing, Stale
from tailrace.embedded.statements import Statement, Writer
from tailrace.embedded.wire import WireConnection
from tailrace.errors import ServerError, UnsupportedSource

NO_SUCH_TRANSACTION = 251
"""What a shard answers that aborted by itself."""


class Transaction(Writer):
    """One transaction of a cluster; what is neither committed nor prepared is aborted."""

    def __init__(self, cluster: Routing) -> None:
        if cluster.config.security.guarded:
            raise UnsupportedSource("transactions over shards need a cluster without auth and tls")
        self._cluster = cluster
        self._session = {"id": Binary.from_uuid(uuid.uuid4())}
        self._participants: dict[str, WireConnection] = {}
        self._prepared: Timestamp | None = None
        self._over = False

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def participants(self) -> list[str]:
        """The shards that it wrote to, the coordinator first."""
        return list(self._participants)

    def run(self, statement: Statement) -> int:
        """Send a write, as a part of the transaction, to its owner."""
        return self._cluster.deliver(
            statement, lambda shard, versions: self._send(statement, shard, versions)
        )

    def _send(self, statement: Statement, shard: str, versions: Mapping[str, Any]) -> int:
        if shard in self._participants:
            return self._attempt(statement, shard, versions)
        begin: dict[str, Any] = {"startTransaction": True, "readConcern": {"level": "majority"}}
        if not self._participants:
            begin["coordinator"] = True
        self._participants[shard] = WireConnection(self._cluster.shards[shard].primary().port)
        try:
            return self._attempt(statement, shard, {**versions, **begin})
        except ServerError as error:
            self._participants.pop(shard).close()  # nothing was done: it takes no part yet
            if error.code in STALE_CODES:
                raise Stale from error
            raise

    def _attempt(self, statement: Statement, shard: str, told: Mapping[str, Any]) -> int:
        database, collection = split_namespace(statement.namespace)
        command = {statement.verb: collection, **statement.fields, **told, **self._marks()}
        answer = self._command(shard, database, command)
        for error in answer.get("writeErrors", ()):
            raise ServerError(error["errmsg"], code=error["code"])
        return int(answer["n"])

    def _marks(self) -> dict[str, Any]:
        return {"lsid": self._session, "txnNumber": Int64(1), "autocommit": False}

    def commit(self) -> None:
        """Commit everywhere: at once on one shard, by the coordinator on several."""
        self._over = True
        shards = self.participants
        if len(shards) > 1:
            participants = [{"shardId": shard} for shard in shards]
            self._tell(shards[0], "coordinateCommitTransaction", participants=participants)
        elif shards:
            self._tell(shards[0], "commitTransaction")

    def prepare(self) -> Timestamp:
        """The first phase, by hand, on every shard; the earliest time it may commit at."""
        times = [
            self._tell(shard, "prepareTransaction")["prepareTimestamp"]
            for shard in self.participants
        ]
        self._prepared = max(times)
        return self._prepared

    def commit_prepared(self, at: Timestamp | None = None) -> None:
        """The second phase, by hand, at the time that ``prepare`` gave or a later one."""
        self._over = True
        for shard in self.participants:
            self._tell(shard, "commitTransaction", commitTimestamp=at or self._prepared)

    def abort(self) -> None:
        """Undo it everywhere, prepared or not."""
        self._over = True
        for shard in self.participants:
            self._tell(shard, "abortTransaction")

    def close(self) -> None:
        """Abort what is still open and not prepared, and hang up."""
        try:
            if not self._over and self._prepared is None:
                self.abort()
        except ServerError as error:
            if error.code != NO_SUCH_TRANSACTION:
                raise
        finally:
            for connection in self._participants.values():
                connection.close()

    def _tell(self, shard: str, command: str, **fields: Any) -> dict[str, Any]:
        whole = {command: 1, **fields, **self._marks(), "writeConcern": BY_ALL}
        return self._command(shard, "admin", whole)

    def _command(self, shard: str, database: str, command: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command that carries the cluster's time, and hear of the shard's."""
        connection, clock = self._participants[shard], self._cluster.clock
        connection.cluster_time = clock.known
        answer = connection.command(database, command)
        clock.take(connection.cluster_time)
        return answer
