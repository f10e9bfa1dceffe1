"""What happens to real replica sets, made to happen: one method for each.

A node is killed, stopped, started again, frozen, or cut off from the others; a primary
steps down, a node is elected, a command fails. Each method returns when its effect is
there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from tailrace.embedded.members import Members
from tailrace.embedded.network import Network
from tailrace.embedded.node import Node
from tailrace.errors import OptionError

CATCH_UP_S = 10
"""How long a primary that steps down waits for a secondary to catch up and take over."""


class Faults(Members):
    """The faults of one set."""

    network: Network | None
    """The calls between the members, where they can be cut."""

    def step_down(self, seconds: int = 60) -> Node:
        """Have the primary step down; returns the next one (of one node: itself again)."""
        old = self.primary()
        if len(self.nodes) == 1:
            old.command("replSetStepDown", seconds, force=True)
            old.command("replSetFreeze", 0)
        else:
            old.command(
                "replSetStepDown", seconds, secondaryCatchUpPeriodSecs=min(seconds, CATCH_UP_S)
            )
        return self.primary()

    def step_up(self, node: Node) -> None:
        """Have a node elected now, not when a time-out says so; it must reach a majority."""
        self._elect([node])

    def kill(self, node: Node) -> None:
        """End a node as a power cut would."""
        node.kill()

    def stop(self, node: Node) -> None:
        """End a node in order."""
        node.stop()

    def restart(self, node: Node) -> None:
        """Start a node again, over the same data; one that runs is ended in order first."""
        node.stop()
        node.start()
        node.await_up()
        self._await_member(node)

    def freeze(self, node: Node) -> None:
        """Stop a node from running; its connections stay open and silent."""
        node.freeze()

    def thaw(self, node: Node) -> None:
        """Let a frozen node run again."""
        node.thaw()

    def cut_off(self, node: Node) -> None:
        """Cut a node off from the other members, but not from clients.

        If it is the primary, the others elect another before this returns; the old one
        takes itself for the primary until an election time-out has passed, and what it
        takes by then is rolled back when it is healed.
        """
        network = self._network()
        was_primary = node.hello().get("isWritablePrimary")
        network.cut_off(node.port)
        others = [
            other for other in self.nodes if other.running and not network.is_cut_off(other.port)
        ]
        if was_primary and len(others) > len(self.nodes) / 2:
            self._elect(others)

    def heal(self, node: Node) -> None:
        """Let a node that was cut off back in, and wait until it has caught up."""
        self._network().heal(node.port)
        self.await_caught_up([node])

    @contextlib.contextmanager
    def hidden(self, node: Node) -> Iterator[None]:
        """Clients cannot reach this node inside the block; the other members can."""
        network = self._network()
        network.hide(node.port)
        try:
            yield
        finally:
            network.show(node.port)

    @contextlib.contextmanager
    def fail_point(
        self,
        name: str,
        mode: str | dict[str, int] = "alwaysOn",
        *,
        node: Node | None = None,
        **data: Any,
    ) -> Iterator[Node]:
        """A fail point on a node (the primary), on inside the block; needs test commands."""
        target = node or self.primary()
        target.command("configureFailPoint", name, mode=mode, data=data)
        try:
            yield target
        finally:
            with contextlib.suppress(PyMongoError):
                target.command("configureFailPoint", name, mode="off")

    def _elect(self, candidates: Sequence[Node]) -> None:
        """Have one of these elected, whoever can be first."""

        def elected() -> bool | None:
            for candidate in candidates:
                # Refused while a voter does not know the set yet, or is ahead of it; and a
                # member that rolls back closes every connection.
                with contextlib.suppress(OperationFailure, AutoReconnect):
                    candidate.command("replSetStepUp")
                    return True
            return None

        names = ", ".join(candidate.name for candidate in candidates)
        self._wait(elected, f"election of {names}")
        self._wait(lambda: self._newest_primary() in candidates or None, f"primary among {names}")

    def _network(self) -> Network:
        if self.network is None:
            raise OptionError(
                "only a set made with partitionable=True has nodes that can be cut off",
                option="partitionable",
            )
        return self.network
