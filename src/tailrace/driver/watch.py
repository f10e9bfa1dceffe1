"""``watch``: the helper of the specification for clients, databases and collections.

It is preferred to an aggregation that starts with ``$changeStream``: only a stream
that was opened here knows how to go on after an error. A read concern other than
majority, or none, is refused by the server, as are options that it does not know.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, overload

from bson.timestamp import Timestamp
from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.collection import Collection
from pymongo.database import Database

from tailrace.driver import options
from tailrace.driver.async_stream import AsyncChangeStream
from tailrace.driver.machine import ResumeMachine
from tailrace.driver.oplog_transport import OplogTransport
from tailrace.driver.patience import Patience
from tailrace.driver.profiles import DEFAULT_PROFILE
from tailrace.driver.pymongo_commands import Errands
from tailrace.driver.stream import ChangeStream, Transport
from tailrace.driver.transport import AsyncClientTransport, ClientTransport
from tailrace.errors import OptionError

MS_PER_S = 1000
UNSAID = frozenset({"target", "pipeline", "engine_options"})
"""Of the arguments, what a stream does not list as its options: the last has secrets in it."""
Pipeline = Sequence[Mapping[str, Any]]


@overload
def watch(
    target: MongoClient[Any] | Database[Any] | Collection[Any],
    pipeline: Pipeline | None = None,
    **options: Any,
) -> ChangeStream: ...


@overload
def watch(
    target: AsyncMongoClient[Any] | AsyncDatabase[Any] | AsyncCollection[Any],
    pipeline: Pipeline | None = None,
    **options: Any,
) -> AsyncChangeStream: ...


def watch(
    target: Any,
    pipeline: Pipeline | None = None,
    full_document: str | None = None,
    resume_after: Mapping[str, Any] | None = None,
    max_await_time_ms: int | None = None,
    batch_size: int | None = None,
    collation: Any | None = None,
    start_at_operation_time: Timestamp | None = None,
    session: Any | None = None,
    start_after: Mapping[str, Any] | None = None,
    comment: Any | None = None,
    full_document_before_change: str | None = None,
    show_expanded_events: bool | None = None,
    *,
    read_preference: Any | None = None,
    resume_policy: str = DEFAULT_PROFILE,
    timeout_ms: int | None = None,
    on_error: str = "raise",
    give_up_after_s: float | None = None,
    token_store: Any | None = None,
    engine: str = "server",
    engine_options: Mapping[str, Any] | None = None,
    **stage_options: Any,
) -> Any:
    """A resumable change stream of a PyMongo client, database or collection.

    The options of PyMongo's own ``watch`` come first, under its names and in its order.
    With ``engine="oplog"`` the events are made here; ``engine_options`` then may name the
    ``shards`` of a cluster (their clients), their ``shard_credentials``, and ``advance``.
    """
    given = dict(locals())
    machine = machine_of(target, given)
    client = options.client_of(target)
    preference = target.read_preference if read_preference is None else read_preference
    errands = Errands(client, preference, target.codec_options)
    own_engine = options.one_of("engine", engine, options.ENGINES) == "oplog"
    facts = facts_of(target, given)
    if isinstance(client, AsyncMongoClient):
        if own_engine:
            raise OptionError("engine='oplog' reads with a MongoClient only", option="engine")
        waiting = AsyncClientTransport(client, errands, session)
        return AsyncChangeStream(machine, waiting, token_store, **facts)
    transport: Transport = (
        OplogTransport(client, preference, engine_options)
        if own_engine
        else ClientTransport(client, errands, session)
    )
    return ChangeStream(machine, transport, token_store, **facts)


def machine_of(target: Any, given: Mapping[str, Any]) -> ResumeMachine:
    """The machine of a stream with these arguments."""
    client = options.client_of(target)
    timeout_ms = given["timeout_ms"]
    options.check_waits(given["max_await_time_ms"], timeout_ms)
    keep_trying = options.one_of("on_error", given["on_error"], options.ON_ERROR) != "raise"
    return ResumeMachine(
        options.wanted(target, given),
        options.profile(given["resume_policy"]),
        clock=time.monotonic,
        timeout_s=None if timeout_ms is None else timeout_ms / MS_PER_S,
        retry_reads=client.options.retry_reads,
        patience=(
            Patience(given["give_up_after_s"], time.monotonic, random.random)
            if keep_trying
            else None
        ),
        stored=given["token_store"] is not None,
    )


def facts_of(target: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a stream can be asked about how it was made."""
    named = {name: value for name, value in given.items() if name not in UNSAID}
    named.update(named.pop("stage_options"))
    return {
        "target": target,
        "pipeline": list(given["pipeline"] or ()),
        "options": {name: value for name, value in named.items() if value is not None},
        "codec_options": target.codec_options,
    }
