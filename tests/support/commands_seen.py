"""What a client sent and got back, as its listeners are told."""

from __future__ import annotations

from typing import Any

from pymongo.monitoring import CommandListener


class CommandsSeen(CommandListener):
    """Keeps the commands of these names, and their replies."""

    def __init__(self, *names: str) -> None:
        self._names = names or ("aggregate", "getMore", "killCursors")
        self.started_events: list[Any] = []
        self.replies: list[Any] = []

    def started(self, event: Any) -> None:
        if event.command_name in self._names:
            self.started_events.append(event)

    def succeeded(self, event: Any) -> None:
        if event.command_name in self._names:
            self.replies.append(event.reply)

    def failed(self, event: Any) -> None: ...

    def names(self) -> list[str]:
        return [event.command_name for event in self.started_events]

    def stages(self) -> list[dict[str, Any]]:
        """The ``$changeStream`` stage of every aggregate."""
        return [
            event.command["pipeline"][0]["$changeStream"]
            for event in self.started_events
            if event.command_name == "aggregate"
        ]

    def sessions(self) -> set[bytes]:
        """The sessions that aggregates and getMores belonged to."""
        return {
            bytes(event.command["lsid"]["id"])
            for event in self.started_events
            if event.command_name != "killCursors"
        }

    def batch_token(self) -> Any:
        """The token of the last reply's batch."""
        return self.replies[-1]["cursor"]["postBatchResumeToken"]
