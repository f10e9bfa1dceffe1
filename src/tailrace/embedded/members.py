"""The nodes of a replica set, and what can be asked of them together.

Who is primary, who follows, and whether everybody has caught up; each question is
asked of the servers, and each ``await`` has a deadline, after which the servers' logs
are in the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pymongo.errors import AutoReconnect

from tailrace.embedded.binaries import Mongod
from tailrace.embedded.mongod import patience_s
from tailrace.embedded.node import Node
from tailrace.embedded.process import POLL_S
from tailrace.errors import ServerStartFailed

T = TypeVar("T")


class Members:
    """The nodes of one set."""

    build: Mongod
    nodes: list[Node]

    def primary(self) -> Node:
        """The primary; waits for one. Of two that believe it, the later elected."""
        return self._wait(self._newest_primary, "primary")

    def secondaries(self) -> list[Node]:
        """The nodes that are secondaries now."""
        return [node for node in self.nodes if node.hello().get("secondary")]

    def await_members(self) -> None:
        """Wait for a primary, and until every other running node is its secondary."""

        def settled() -> Node | None:
            primary = self._newest_primary()
            others = [node for node in self.nodes if node.running and node is not primary]
            return primary if all(node.hello().get("secondary") for node in others) else None

        self._wait(settled, "primary with all its secondaries")

    def await_caught_up(self, nodes: Sequence[Node] | None = None) -> None:
        """Wait until these nodes (all that run) have what the primary has now."""
        waiting = [node for node in self.nodes if node.running] if nodes is None else list(nodes)

        def caught_up() -> bool | None:
            primary = self._newest_primary()
            wanted = _applied(primary) if primary is not None else None
            if wanted is None:
                return None
            return all(_is_member(node) and _has(node, wanted) for node in waiting) or None

        self._wait(caught_up, "node that has caught up")

    def _newest_primary(self) -> Node | None:
        claims = [
            (said["electionId"], at)
            for at, node in enumerate(self.nodes)
            if (said := node.hello()).get("isWritablePrimary")
        ]
        return self.nodes[max(claims)[1]] if claims else None

    def _await_member(self, node: Node) -> None:
        self._wait(lambda: _is_member(node) or None, f"{node.name} as a member")

    def _wait(self, condition: Callable[[], T | None], what: str) -> T:
        within_s = patience_s(self.build)
        deadline = time.monotonic() + within_s
        while (found := condition()) is None:
            if time.monotonic() > deadline:
                logs = "\n".join(node.process.log_tail() for node in self.nodes)
                raise ServerStartFailed(f"no {what} within {within_s:g} s", log=logs)
            time.sleep(POLL_S)
        return found


def _is_member(node: Node) -> bool:
    said = node.hello()
    return bool(said.get("isWritablePrimary") or said.get("secondary"))


def _has(node: Node, wanted: tuple[Any, ...]) -> bool:
    applied = _applied(node)
    return applied is not None and applied >= wanted


def _applied(node: Node) -> tuple[Any, ...] | None:
    """How far a node is: term, then time. A newer term outweighs entries to be rolled back."""
    try:
        applied = node.command("replSetGetStatus")["optimes"]["appliedOpTime"]
    except AutoReconnect:  # it closes every connection when it rolls back
        return None
    return applied["t"], applied["ts"]
