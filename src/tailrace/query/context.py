"""What a pipeline is compiled for: the server's release, variables, and what is known of now.

The same stages mean different things to different releases; everything that does goes
by ``Context.version``. Nothing in this room asks anybody: what a stream was opened with
(its ``let``, the time, the collation) is written here once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.errors import NotEvaluable, ServerError
from tailrace.query.values import Value

Version = tuple[int, int, int]
MAX_NESTING = 180
"""How deep stages may nest; the server's own limit for what it is sent is 200."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a stream's stages are read against."""

    version: Version
    variables: Mapping[bytes, Value] = field(default_factory=dict)
    """``let``, and ``NOW`` and ``CLUSTER_TIME`` where they are known."""
    collated: bool = False
    """Whether strings are to be compared by another collation than the simple one."""

    def since(self, *version: int) -> bool:
        """Whether the release is this one or a later one."""
        return self.version >= version


def refused(code: int, message: str) -> ServerError:
    """The server's refusal of a stage, an operator or a value."""
    return ServerError(message, code=code)


def badly_formed(context: Context, code: int, message: str) -> ServerError:
    """The refusal of a field that is missing or unknown, which has a name since 7.0."""
    if not context.since(7, 0):
        return refused(code, message)
    return ServerError(message, code=code, code_name=NAMED_SINCE_7[code])


NAMED_SINCE_7 = {40414: "IDLFailedToParse", 40415: "IDLUnknownField"}


def not_here(operator: str, why: str) -> NotEvaluable:
    """The error of what only a server can evaluate."""
    return NotEvaluable(f"{operator} cannot be evaluated here: {why}", operator=operator)
