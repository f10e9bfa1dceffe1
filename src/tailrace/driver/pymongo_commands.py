"""A request as the arguments of PyMongo's ``Database.command``, and its outcome as facts.

Everything that the synchronous and the asynchronous transport have in common, which is
all but the waiting: where a command goes, how long it may take, what an error means.
PyMongo's exceptions are looked at here and nowhere else; the caller gets them as they
were raised.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pymongo
from bson.codec_options import CodecOptions
from bson.son import SON
from pymongo.errors import (
    ConnectionFailure,
    NotPrimaryError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.topology_description import TopologyDescription

from tailrace.driver.document import RawDocument
from tailrace.driver.requests import (
    Address,
    Cursor,
    Failure,
    GetMore,
    Kill,
    Kind,
    Open,
    Reply,
    Request,
)
from tailrace.driver.servers import Chosen, Pinned, ServerGone, sole_address

KILL_S = 5.0
"""How long a killCursors may take: nobody waits for what comes of it."""
SHORTEST_S = 0.001
"""PyMongo takes 0 for "no limit"."""
CHOOSING = ("ReplicaSetWithPrimary", "ReplicaSetNoPrimary", "Unknown")
"""The topologies in which PyMongo asks a read preference."""


class Bounded(SON[str, Any]):
    """A command that keeps its own ``maxTimeMS`` when a longer one is put into it.

    PyMongo puts the whole rest of a client-side time-out there. For a getMore that
    would turn "wait a second for events" into "wait as long as you may".
    """

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "maxTimeMS" and key in self:
            value = min(value, self[key])
        super().__setitem__(key, value)


@dataclass(frozen=True, slots=True)
class Call:
    """One ``Database.command``: its arguments, and what is known of the server it goes to."""

    database: str
    command: dict[str, Any]
    arguments: dict[str, Any]
    timeout_s: float | None
    address: Callable[[], Address | None]
    """Whom it was sent to, once it was."""
    wire_version: int | None = None
    """What that server spoke before: after an error PyMongo may know it no more."""


class Errands:
    """What a transport knows of its client: how to ask, and how to read the outcome."""

    def __init__(self, client: Any, read_preference: Any, codec_options: CodecOptions[Any]) -> None:
        self._client = client
        self._read_preference = read_preference
        self._codec_options = codec_options.with_options(document_class=RawDocument)

    def call(self, request: Request, session: Any) -> Call:
        """How a request is said to PyMongo; an error when its server is gone already."""
        if isinstance(request, Open):
            return self._open(request, session)
        if isinstance(request, GetMore):
            command = Bounded(request.command)
            return self._pinned(request.cursor, command, session, request.timeout_s)
        assert isinstance(request, Kill)  # noqa: S101  the rest needs no client
        # Without the session: another thread may be waiting in a getMore with it.
        return self._pinned(request.cursor, request.command, None, KILL_S)

    def _open(self, request: Open, session: Any) -> Call:
        options = self._client.options
        choice = Chosen(self._read_preference, options.local_threshold_ms, options.server_selector)
        command = with_cluster_time(request.command, session)
        arguments = self._arguments(choice, session)
        return Call(request.database, command, arguments, request.timeout_s, lambda: choice.address)

    def _pinned(
        self, cursor: Cursor, command: dict[str, Any], session: Any, timeout_s: float | None
    ) -> Call:
        address = cursor.address
        topology = self._topology
        server = topology.server_descriptions().get(address) if address else None
        lost = server is None and topology.topology_type_name in CHOOSING
        if lost or (server is not None and not server.is_server_type_known):
            raise ServerGone(address)
        arguments = self._arguments(Pinned(address), session)
        wire_version = server.max_wire_version if server is not None else None
        return Call(cursor.database, command, arguments, timeout_s, lambda: address, wire_version)

    def _arguments(self, read_preference: Any, session: Any) -> dict[str, Any]:
        return {
            "read_preference": read_preference,
            "codec_options": self._codec_options,
            "session": session,
        }

    def answered(self, call: Call, document: Mapping[str, Any]) -> Reply:
        """The reply to a call, and who gave it."""
        address = call.address()
        if address is None:
            topology = self._topology
            address = sole_address(topology.server_descriptions(), topology.topology_type_name)
        server = self._topology.server_descriptions().get(address) if address else None
        known = server is not None and server.is_server_type_known
        return Reply(document, address, server.max_wire_version if server and known else None)

    @property
    def _topology(self) -> TopologyDescription:
        topology: TopologyDescription = self._client.topology_description
        return topology


def with_cluster_time(command: dict[str, Any], session: Any) -> dict[str, Any]:
    """An aggregate that reads its own session's writes, when the session wants that."""
    time = session.operation_time if session is not None else None
    if time is None or not session.options.causal_consistency:
        return command
    return {**command, "readConcern": {**command.get("readConcern", {}), "afterClusterTime": time}}


def within(timeout_s: float | None) -> contextlib.AbstractContextManager[Any]:
    """PyMongo's client-side time-out around a command; None leaves what is set already."""
    if timeout_s is None:
        return contextlib.nullcontext()
    return pymongo.timeout(max(timeout_s, SHORTEST_S))


def failure(error: PyMongoError, wire_version: int | None) -> Failure:
    """An error as facts; raised again when it is one of the command's making."""
    details: Mapping[str, Any] = {}
    code = None
    if isinstance(error, OperationFailure):
        kind, code, details = Kind.SERVER, error.code, error.details or {}
    elif isinstance(error, NotPrimaryError):
        # A ConnectionFailure to PyMongo; but a server answered.
        kind, details = Kind.SERVER, _details(error)
        code = details.get("code")
    elif isinstance(error, ServerSelectionTimeoutError):
        kind = Kind.SELECTION
    elif isinstance(error, ConnectionFailure):
        kind = Kind.NETWORK
    else:
        raise error
    return Failure(
        error,
        kind,
        code,
        frozenset(details.get("errorLabels", ())),
        str(details.get("errmsg", error)),
        wire_version,
        error.timeout,
    )


def _details(error: NotPrimaryError) -> Mapping[str, Any]:
    said = error.details
    return said if isinstance(said, Mapping) else {}
