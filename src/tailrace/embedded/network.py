"""The calls to the members of one set, which can be cut.

A set that is made ``partitionable`` gives its members' bridges as their addresses.
Whoever is cut off is on a side of its own: no member calls it and it calls none, while
clients reach everybody; or it is the clients that cannot reach it. Only test commands
make members say who they are, and only without encryption can it be read.
"""

from __future__ import annotations

import threading

from tailrace.embedded.bridge import Bridge
from tailrace.embedded.ports import free_port


class Network:
    """The bridges of a set's members, and who is cut off."""

    def __init__(self) -> None:
        self._bridges: list[Bridge] = []
        self._cut_off: frozenset[int] = frozenset()
        self._hidden: frozenset[int] = frozenset()
        self._lock = threading.Lock()

    def behind(self, public_port: int) -> int:
        """Put a bridge at a port; the port behind it, for a member to listen on."""
        port = free_port()
        self._bridges.append(Bridge(public_port, port, self._lets_through))
        return port

    def cut_off(self, port: int) -> None:
        """Break every call between this member and the others, and let none through."""
        with self._lock:
            self._cut_off |= {port}
        for bridge in self._bridges:
            bridge.break_cut_links()

    def heal(self, port: int) -> None:
        """Let the calls between this member and the others through again."""
        with self._lock:
            self._cut_off -= {port}

    def hide(self, port: int) -> None:
        """Break every call of a client to this member, and let none through."""
        with self._lock:
            self._hidden |= {port}
        for bridge in self._bridges:
            bridge.break_cut_links()

    def show(self, port: int) -> None:
        """Let clients reach this member again."""
        with self._lock:
            self._hidden -= {port}

    def is_cut_off(self, port: int) -> bool:
        """Whether this member is cut off."""
        return port in self._cut_off

    def close(self) -> None:
        """Take the bridges down."""
        for bridge in self._bridges:
            bridge.close()
        self._bridges.clear()

    def _lets_through(self, caller: int | None, called: int) -> bool:
        if caller is None:
            return called not in self._hidden
        return caller == called or not {caller, called} & self._cut_off
