"""The cluster's logical clock, carried from one server to another.

A server only waits for a time, or writes behind it, that it has heard of; routers tell
them with every command. ``ClusterClock`` keeps the newest ``$clusterTime`` that any server
gave, signed where the cluster signs it, and puts it on what is sent through its sessions.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from pymongo import MongoClient
from pymongo.client_session import ClientSession


class ClusterClock:
    """The newest time that is known to us; may be used by several threads."""

    def __init__(self) -> None:
        self._known: Mapping[str, Any] | None = None
        self._lock = threading.Lock()

    @property
    def time(self) -> int:
        """The time, as seconds << 32 | increment; 0 before any was heard."""
        known = self._known
        if known is None:
            return 0
        time = known["clusterTime"]
        return int(time.time) << 32 | int(time.inc)

    @property
    def known(self) -> Mapping[str, Any] | None:
        """The time as servers tell it to each other."""
        return self._known

    @contextlib.contextmanager
    def session(self, client: MongoClient[Any]) -> Iterator[ClientSession]:
        """A session whose commands tell their server the time, and bring back the server's."""
        with client.start_session(causal_consistency=False) as session:
            if self._known is not None:
                session.advance_cluster_time(self._known)
            try:
                yield session
            finally:
                self.take(session.cluster_time)

    def hear(self, client: MongoClient[Any]) -> None:
        """Ask a server for its time, and tell it ours."""
        with self.session(client) as session:
            client.admin.command("ping", session=session)

    def hear_of(self, time: int, client: MongoClient[Any]) -> None:
        """Know a time that this server has reached."""
        if self.time < time:
            self.hear(client)

    def take(self, said: Mapping[str, Any] | None) -> None:
        """Hear of a time that a server told."""
        with self._lock:
            if said is not None and (
                self._known is None or said["clusterTime"] > self._known["clusterTime"]
            ):
                self._known = said
