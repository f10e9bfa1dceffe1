"""Which server a command goes to, said to PyMongo in its own terms: read preferences.

A stream needs two things that no method of PyMongo gives: to know which server
answered its aggregate, and to send getMore and killCursors to that one and no other.
Both are server selections, and a read preference is what selects. ``Chosen`` selects
as the caller's read preference does, and remembers whom; ``Pinned`` selects one
server, and fails at once when it is gone, where PyMongo would wait for it to come back.

PyMongo asks neither of them when it is connected directly to one server (there is no
choice), nor for a sharded cluster, whose mongos are all alike to it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pymongo.errors import AutoReconnect
from pymongo.read_preferences import Primary
from pymongo.server_description import ServerDescription
from pymongo.server_selectors import Selection

from tailrace.driver.requests import Address
from tailrace.errors import UnsupportedSource

CustomSelector = Callable[[Sequence[ServerDescription]], Sequence[ServerDescription]]


class Chosen(Primary):
    """Selects one server as another read preference would, and remembers its address."""

    def __init__(self, wanted: Any, threshold_ms: float, custom: CustomSelector | None) -> None:
        super().__init__()
        self._wanted = wanted
        self._threshold_s = threshold_ms / 1000
        self._custom = custom
        self.address: Address | None = None

    @property
    def mode(self) -> int:
        """The other one's mode: what the server is told."""
        return int(self._wanted.mode)

    @property
    def document(self) -> dict[str, Any]:
        """The other one as the server is told it."""
        said: dict[str, Any] = self._wanted.document
        return said

    @property
    def min_wire_version(self) -> int:
        """What the other one needs of every server."""
        return int(self._wanted.min_wire_version)

    def __call__(self, selection: Selection) -> Selection:
        """One of the servers that the other one would take."""
        suitable: Sequence[ServerDescription] = self._wanted(selection).server_descriptions
        if suitable and self._custom is not None:
            suitable = self._custom(suitable)
        near = nearest(suitable, self._threshold_s)
        if not near:
            return selection.with_server_descriptions([])
        one = random.choice(near)  # noqa: S311  which of equals, not a secret
        self.address = one.address
        return selection.with_server_descriptions([one])


class Pinned(Primary):
    """Selects the server of an address; the server is told nothing of it."""

    def __init__(self, address: Address | None) -> None:
        super().__init__()
        self._address = address

    def __call__(self, selection: Selection) -> Selection:
        """The pinned server; raises when it is not known, for it may never come back."""
        known = [one for one in selection.server_descriptions if one.address == self._address]
        if not known:
            raise ServerGone(self._address)
        return selection.with_server_descriptions(known)


class ServerGone(AutoReconnect):
    """The server that holds a cursor is not there; as good as a broken connection."""

    def __init__(self, address: Address | None) -> None:
        super().__init__(f"the server of the cursor is gone: {address}")


def nearest(servers: Sequence[ServerDescription], threshold_s: float) -> list[ServerDescription]:
    """The servers that answer about as fast as the fastest one."""
    times = [one.round_trip_time or 0.0 for one in servers]
    return [
        one for one, time in zip(servers, times, strict=True) if time <= min(times) + threshold_s
    ]


def sole_address(servers: Mapping[Address, ServerDescription], topology: str) -> Address | None:
    """The address of the only server there is, when PyMongo makes no choice."""
    known = [address for address, server in servers.items() if server.is_server_type_known]
    if topology == "Sharded" and len(known) > 1:
        raise UnsupportedSource(
            "a change stream through several mongos cannot keep to one of them: "
            "name a single mongos in the connection string"
        )
    return known[0] if len(known) == 1 else None
