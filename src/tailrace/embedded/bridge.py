"""The port that stands before a member of a set, and knows who calls.

With test commands on, a mongod says its own port in the first message of every
connection that it makes (``hostInfo``, meant for bridges like this one); a client does
not. So the calls between members can be cut while every client still gets through.
A cut is seen as a network's: what is under way ends, and nobody answers anew.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tailrace.embedded.ports import LOOPBACK

HOST_INFO = re.compile(rb"\x02hostInfo\x00.{4}[^\x00]*:(\d+)\x00", re.DOTALL)
HEADER = struct.Struct("<i")
"""The length of a message, which includes these bytes."""
CHUNK_BYTES = 1 << 16
LINGER_NOT = struct.pack("ii", 1, 0)
"""Closing then resets the connection, as a peer that is gone would."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """One connection through a bridge; a caller of None is a client."""

    caller: int | None
    near: socket.socket
    far: socket.socket

    def break_off(self) -> None:
        """End both halves; whoever waits on them is woken."""
        for half in (self.near, self.far):
            with contextlib.suppress(OSError):
                half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
                half.shutdown(socket.SHUT_RDWR)


class Bridge:
    """A port in front of a member's own."""

    def __init__(
        self, public_port: int, target: int, lets_through: Callable[[int | None, int], bool]
    ) -> None:
        self.target = target
        self._lets_through = lets_through
        self._links: set[Link] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((LOOPBACK, public_port))
        threading.Thread(target=self._accept, name=f"bridge-{target}", daemon=True).start()

    def break_cut_links(self) -> None:
        """End every connection that would not be let through now."""
        with self._lock:
            for link in self._links:
                if not self._admits(link.caller):
                    link.break_off()

    def close(self) -> None:
        """Take no more connections, and end those that there are."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for link in self._links:
                link.break_off()

    def _admits(self, caller: int | None) -> bool:
        return self._lets_through(caller, self.target)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            first = first_message(near)
            caller = caller_of(first)
            with socket.create_connection((LOOPBACK, self.target)) as far:
                link = Link(caller, near, far)
                with self._lock:
                    if not self._admits(caller):
                        link.break_off()
                        return
                    self._links.add(link)
                try:
                    far.sendall(first)
                    back = threading.Thread(target=_pump, args=(far, link, near), daemon=True)
                    back.start()
                    _pump(near, link, far)
                    back.join()
                finally:
                    with self._lock:
                        self._links.discard(link)


def first_message(connection: socket.socket) -> bytes:
    """The first message of a connection, whole; what there is when it ends early."""
    received = b""
    wanted = HEADER.size
    while len(received) < wanted:
        data = connection.recv(CHUNK_BYTES)
        if not data:
            break
        received += data
        if len(received) >= HEADER.size:
            (wanted,) = HEADER.unpack_from(received)
    return received


def caller_of(message: bytes) -> int | None:
    """The port of the member that sent this first message; None for a client's."""
    found = HOST_INFO.search(message)
    return int(found[1]) if found else None


def _pump(source: socket.socket, link: Link, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK_BYTES):
            target.sendall(data)
    link.break_off()
