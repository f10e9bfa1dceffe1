"""A machine's commands, run by a PyMongo client: its pools, its TLS, its logins.

One explicit session serves a stream for its life. Nothing is decided here, and what
the two transports have in common is in ``pymongo_commands``; they differ in waiting.
"""

from __future__ import annotations

from typing import Any

from pymongo import AsyncMongoClient, MongoClient
from pymongo.errors import PyMongoError

from tailrace.driver.pymongo_commands import Errands, failure, within
from tailrace.driver.requests import Answer, GetMore, Kill, Open
from tailrace.engine import ShardStatus


class ClientTransport:
    """Runs a stream's commands on a client that stays its owner's."""

    def __init__(self, client: MongoClient[Any], errands: Errands, session: Any = None) -> None:
        self._client = client
        self._errands = errands
        self._own = client.start_session(causal_consistency=False) if session is None else None
        self._session = session or self._own

    def perform(self, request: Open | GetMore | Kill) -> Answer:
        """Run a request's command; an error of its comes back as facts."""
        call = None
        try:
            call = self._errands.call(request, self._session)
            with within(call.timeout_s):
                database = self._client[call.database]
                document = database.command(call.command, **call.arguments)
            return self._errands.answered(call, document)
        except PyMongoError as error:
            return failure(error, call.wire_version if call else None)

    def lag(self) -> tuple[int, int] | None:
        """The server does not say."""
        return None

    def shards(self) -> list[ShardStatus]:
        """The server does not say."""
        return []

    def end(self) -> None:
        """Give the session back, if it is the stream's own."""
        if self._own is not None:
            self._own.end_session()


class AsyncClientTransport:
    """The same on an asynchronous client."""

    def __init__(
        self, client: AsyncMongoClient[Any], errands: Errands, session: Any = None
    ) -> None:
        self._client = client
        self._errands = errands
        self._own = client.start_session(causal_consistency=False) if session is None else None
        self._session = session or self._own

    async def perform(self, request: Open | GetMore | Kill) -> Answer:
        """Run a request's command; an error of its comes back as facts."""
        call = None
        try:
            call = self._errands.call(request, self._session)
            with within(call.timeout_s):
                database = self._client[call.database]
                document = await database.command(call.command, **call.arguments)
            return self._errands.answered(call, document)
        except PyMongoError as error:
            return failure(error, call.wire_version if call else None)

    async def end(self) -> None:
        """Give the session back, if it is the stream's own."""
        if self._own is not None:
            await self._own.end_session()
