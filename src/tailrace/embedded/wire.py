"""A connection to one mongod that sends exactly the commands that it is given.

PyMongo puts its own session on every command and shakes hands as a client; what
servers send to each other needs neither. No authentication and no encryption: this
is for clusters of one's own that have none. Errors come as ``ServerError``.
"""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Mapping
from typing import Any

import bson

from tailrace.embedded.ports import LOOPBACK
from tailrace.errors import ServerError, SourceLost

OP_MSG = 2013
HEADER = struct.Struct("<iiiiIB")
"""Length, request id, answered id, operation, flags, and the kind of the only section."""
ANSWER_S = 120.0
INTERNAL: dict[str, Any] = {"internalClient": {"minWireVersion": 0, "maxWireVersion": 21}}
"""What a mongos says of itself; the server then believes its versions and its merges."""


class WireConnection:
    """One connection, as a client or as another server."""

    def __init__(self, port: int, *, internal: bool = False) -> None:
        self._ids = itertools.count(1)
        self._socket = socket.create_connection((LOOPBACK, port), timeout=ANSWER_S)
        self.cluster_time: Mapping[str, Any] | None = None
        """The newest ``$clusterTime`` that was heard of here; may be set to pass one on."""
        self.command("admin", {"hello": 1, **(INTERNAL if internal else {})})

    def command(self, database: str, command: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command and read its answer; one that is not ok is raised."""
        answer = bson.decode(self.raw_command(database, command))
        self._hear(answer)
        if not answer["ok"]:
            raise ServerError(
                answer["errmsg"], code=answer["code"], code_name=answer.get("codeName")
            )
        return answer

    def raw_command(self, database: str, command: Mapping[str, Any]) -> bytes:
        """Send a command and read its answer as it is, whether ok or not."""
        known = {} if self.cluster_time is None else {"$clusterTime": self.cluster_time}
        body = bson.encode({**command, **known, "$db": database})
        length = HEADER.size + len(body)
        self._socket.sendall(HEADER.pack(length, next(self._ids), 0, OP_MSG, 0, 0) + body)
        header = self._read(HEADER.size)
        return self._read(HEADER.unpack(header)[0] - HEADER.size)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _hear(self, answer: Mapping[str, Any]) -> None:
        said = answer.get("$clusterTime")
        known = self.cluster_time
        if said and (known is None or said["clusterTime"] > known["clusterTime"]):
            self.cluster_time = said

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            data = self._socket.recv(size - len(parts))
            if not data:
                raise SourceLost("the server hung up")
            parts += data
        return bytes(parts)
