"""Look-ups of a shard's stream: its own log and images, and documents from their owners.

A document may have moved since it was changed, and a shard may still have one that it no
longer owns. So it is asked for as a router does: the shards that own a part of the
collection are asked with the version that we take them to have, and each answers only
from what it owns. Whoever knows better refuses, and the catalog is read again.

A mongos, where there is one, does all of this itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from bson.binary import Binary
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

from tailrace.engine.live_lookups import LiveLookups, known
from tailrace.engine.sharded.catalog import Catalog
from tailrace.engine.sharded.clock import ClusterClock
from tailrace.engine.sharded.topology import CONFIG_GRANT
from tailrace.errors import OptionError, SourceLost
from tailrace.event.shape import Shape
from tailrace.oplog.deployment import Deployment
from tailrace.raw import document, element, spans
from tailrace.raw.elements import OBJECT

STALE_CODES = frozenset({63, 249, 343, 13388})
"""StaleShardVersion, StaleDbVersion, ShardCannotRefreshDueToLocksHeld, StaleConfig."""
RETRY_S = 30.0
INTERNAL = frozenset({"local", "config", "admin"})

Route = Mapping[str, Mapping[str, Any]]
"""Each shard that has some of a collection, and what a command to it must carry."""


def as_ranges(key: bytes) -> RawBSONDocument:
    """A query for exactly this key that does not look like one.

    Asked for an exact shard key, a shard takes the router's word for it that it owns it, and
    shows an orphan too; asked for a range of keys, it leaves out what it does not own.
    """
    return RawBSONDocument(
        document(
            *(
                element(
                    name,
                    OBJECT,
                    document(
                        element(b"$gte", kind, key[start:end]),
                        element(b"$lte", kind, key[start:end]),
                    ),
                )
                for name, (kind, start, end) in spans(key).items()
            )
        )
    )


class StaleRoute(Exception):
    """A shard knows the collection to be distributed otherwise than we believe."""


class OwnerLookups(LiveLookups):
    """Answers from one shard's log and images, and from every owner's documents."""

    def __init__(
        self,
        own: Deployment,
        shape: Shape,
        config: Deployment | None,
        shards: Mapping[str, Deployment],
        clock: ClusterClock,
    ) -> None:
        super().__init__(own, shape)
        self._config = config
        self._shards = shards
        self._clock = clock
        self._routes: dict[str, Route] = {}

    def _find(
        self,
        database: str,
        collection: str | Binary,
        wanted: Any,
        time: int,
        grant: str,
        **fields: Any,
    ) -> list[RawBSONDocument]:
        """A document of this database by its owners; what is the shard's own, from itself."""
        if database in INTERNAL or isinstance(collection, Binary):
            return super()._find(database, collection, wanted, time, grant, **fields)
        namespace = f"{database}.{collection}"
        deadline = monotonic() + RETRY_S
        while True:
            try:
                return self._find_everywhere(database, collection, wanted, time, grant, fields)
            except StaleRoute as stale:
                self._routes.pop(namespace, None)
                if monotonic() > deadline:
                    raise SourceLost(f"no owner of {namespace} is to be found") from stale
            self._deployment.pause()

    def _find_everywhere(
        self,
        database: str,
        collection: str,
        wanted: Any,
        time: int,
        grant: str,
        fields: Mapping[str, Any],
    ) -> list[RawBSONDocument]:
        found: list[RawBSONDocument] = []
        for shard, versions in self._route(f"{database}.{collection}").items():
            told = {**fields, **versions}
            found += self._find_at(
                shard, database, collection, as_ranges(wanted.raw), time, grant, told
            )
        return found

    def _find_at(
        self,
        shard: str,
        database: str,
        collection: str,
        wanted: Any,
        time: int,
        grant: str,
        fields: Mapping[str, Any],
    ) -> list[RawBSONDocument]:
        deployment = self._shards[shard]
        self._clock.hear_of(time, self._deployment.client)

        def ask() -> list[RawBSONDocument]:
            with self._clock.session(deployment.client) as session:
                try:
                    return known(
                        deployment, database, collection, wanted, time, **fields, session=session
                    )
                except OperationFailure as error:
                    if error.code in STALE_CODES:
                        raise StaleRoute from error
                    raise

        return deployment.ask(ask, grant)

    def _route(self, namespace: str) -> Route:
        """Who has some of a collection; nobody when its database is gone."""
        route = self._routes.get(namespace)
        if route is None:
            config = self._config
            if config is None:
                raise OptionError(
                    "documents are looked up with their owners, whom only the config servers know",
                    option="fullDocument",
                )
            catalog = Catalog(config.client)
            try:
                route = config.ask(lambda: catalog.versions(namespace), CONFIG_GRANT)
            except OptionError:  # no such database
                return {}
            self._routes[namespace] = route
        return route
