"""What the machine asks for and what it is told: the only words between it and a transport.

The machine yields a request, whoever runs it sends back an answer: ``Reply`` or
``Failure`` for ``Open`` and ``GetMore``, a token or None for ``LoadToken``, and nothing
for the rest. A transport decides nothing; it turns a reply into a document, and an
error into facts.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias, TypeVar

Address: TypeAlias = tuple[str, int | None]
Document: TypeAlias = Mapping[str, Any]
Token: TypeAlias = Mapping[str, Any]


class Kind(Enum):
    """Where an error comes from, as far as resuming goes."""

    NETWORK = auto()
    """No answer came: the connection broke, or the server is gone."""
    SELECTION = auto()
    """No server to ask was found in time."""
    SERVER = auto()
    """A server answered that it will not."""


@dataclass(frozen=True, slots=True)
class Open:
    """Run an aggregate on a freshly selected server, as the stream's read preference says."""

    database: str
    command: dict[str, Any]
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """A cursor that is open on a server."""

    number: int
    database: str
    collection: str
    address: Address | None


@dataclass(frozen=True, slots=True)
class GetMore:
    """Ask the cursor's own server for the next batch; fail at once when it is gone."""

    cursor: Cursor
    command: dict[str, Any]
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Kill:
    """Have the cursor's own server forget it; what comes of it is nobody's business."""

    cursor: Cursor
    command: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass before another attempt; less when the stream is closed meanwhile."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LoadToken:
    """Read the token that the store holds; None for none."""


@dataclass(frozen=True, slots=True)
class SaveToken:
    """Have the store hold this token; durable when the answer comes."""

    token: Token


Request: TypeAlias = Open | GetMore | Kill | Pause | LoadToken | SaveToken


@dataclass(frozen=True, slots=True)
class Reply:
    """A command's answer, and who gave it."""

    document: Document
    address: Address | None = None
    wire_version: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A command's error as facts; ``error`` is what is raised when it must be."""

    error: Exception
    kind: Kind
    code: int | None = None
    labels: frozenset[str] = frozenset()
    message: str = ""
    wire_version: int | None = None
    timed_out: bool = False


Answer: TypeAlias = Reply | Failure | Token | None

T = TypeVar("T")
Steps: TypeAlias = Generator[Request, Answer, T]
