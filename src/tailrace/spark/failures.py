"""The package's errors, found again in what Spark makes of them.

An error that is raised on an executor, in a source's process or in ``foreachBatch``
reaches the driver as text inside Spark's own exceptions. Its class and its message are
in it; whatever else went wrong in Spark stays Spark's.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tailrace.errors import OperatorError, ServerError, TailraceError

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises; the second is what it has no class for."""
_RAISED = re.compile(r"tailrace\.errors\.(\w+): (.+)")
_SERVER = re.compile(r"(.*) \((\w+), code (\d+)\)\s*$")
_CONFLICTS = ("ConcurrentTransaction", "ConcurrentAppend", "DELTA_CONCURRENT", "CONCURRENT_STREAM")
MOST_CHARACTERS = 500


def converted(error: Exception) -> TailraceError:
    """The error that an exception of Spark's stands for."""
    if isinstance(error, TailraceError):
        return error
    said = str(error)
    raised = _RAISED.findall(said)
    if raised:
        name, message = raised[-1]
        return _rebuilt(name, message.strip())
    if any(sign in said for sign in _CONFLICTS):
        return OperatorError(
            "another query writes to this target: two of them commit at the same time"
        )
    first = said.strip().partition("\n")[0][:MOST_CHARACTERS]
    return OperatorError(f"Spark gave up: {type(error).__name__}: {first}")


def _rebuilt(name: str, message: str) -> TailraceError:
    kind = _named(TailraceError).get(name, TailraceError)
    if issubclass(kind, ServerError):
        found = _SERVER.match(message)
        if found:
            return kind(found[1], code=int(found[3]), code_name=found[2])
        return ServerError(message, code=0)
    made: TailraceError = kind(message)
    return made


def _named(kind: type[TailraceError]) -> dict[str, type[TailraceError]]:
    """A class and all below it, by name."""
    found = {kind.__name__: kind}
    for each in kind.__subclasses__():
        found.update(_named(each))
    return found
