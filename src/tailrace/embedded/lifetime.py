"""What is started and closed, and so can stand in a ``with`` statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

Started = TypeVar("Started", bound="Lifetime")


class Lifetime(ABC):
    """A server, or several, that exist between a start and a close."""

    @abstractmethod
    def start(self) -> None:
        """Make it ready for use; what was begun is undone when that fails."""

    @abstractmethod
    def close(self) -> None:
        """End it at once, and remove everything; done twice, it does no harm."""

    def __enter__(self: Started) -> Started:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
