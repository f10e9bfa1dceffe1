"""A live deployment as the readers see it: a client, whom to read from, how patiently.

PyMongo's errors are converted here, once, by who must act. ``is_passing`` tells what
goes away by asking again (a server that ended, an election, a cursor that is gone)
from what does not; ``Deployment.ask`` asks again for as long as the client itself
would look for a server. Nothing here knows what is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from pymongo import MongoClient
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError

from tailrace.errors import PrivilegeError, ServerError, SourceLost, TailraceError

UNAUTHORIZED = 13
PASSING_CODES = frozenset(
    (
        6,  # HostUnreachable
        7,  # HostNotFound
        43,  # CursorNotFound
        50,  # MaxTimeMSExpired
        63,  # StaleShardVersion
        89,  # NetworkTimeout
        91,  # ShutdownInProgress
        133,  # FailedToSatisfyReadPreference
        134,  # ReadConcernMajorityNotAvailableYet
        136,  # CappedPositionLost
        150,  # StaleEpoch
        175,  # QueryPlanKilled
        189,  # PrimarySteppedDown
        234,  # RetryChangeStream
        237,  # CursorKilled
        262,  # ExceededTimeLimit
        9001,  # SocketException
        10107,  # NotWritablePrimary
        11600,  # InterruptedAtShutdown
        11601,  # Interrupted: somebody ended the operation, not the stream
        11602,  # InterruptedDueToReplStateChange
        13388,  # StaleConfig
        13435,  # NotPrimaryNoSecondaryOk
        13436,  # NotPrimaryOrSecondary
    )
)
PAUSE_S = 0.1
"""Between two attempts: an election takes a second or more."""

Answer = TypeVar("Answer")


class Deployment:
    """A replica set that is read through a PyMongo client, which stays its owner's."""

    def __init__(self, client: MongoClient[Any], read_preference: Any = None) -> None:
        self.client = client
        self.read_preference = (
            client.read_preference if read_preference is None else read_preference
        )
        self.patience_s: float = client.options.server_selection_timeout
        self._closed = threading.Event()

    def ask(self, question: Callable[[], Answer], grant: str) -> Answer:
        """The answer, asked for again while what stands in its way may pass.

        ``grant`` says which privilege the question needs.
        """
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                return question()
            except PyMongoError as error:
                passed = self._closed.is_set() or time.monotonic() > deadline
                if passed or not is_passing(error):
                    raise converted(error, grant) from error
            self.pause()

    def pause(self) -> None:
        """Let a moment pass between two attempts; none once closed."""
        self._closed.wait(PAUSE_S)

    def close(self) -> None:
        """Ask no more; also from another thread."""
        self._closed.set()

    @property
    def closed(self) -> bool:
        """Whether nothing is asked any more."""
        return self._closed.is_set()


def is_passing(error: PyMongoError) -> bool:
    """Whether asking again, perhaps another server, can help."""
    if isinstance(error, OperationFailure):
        return error.code in PASSING_CODES
    return isinstance(error, ConnectionFailure)


def converted(error: PyMongoError, grant: str) -> TailraceError:
    """The package's error for one of PyMongo's; ``grant`` is what would have allowed it."""
    if isinstance(error, OperationFailure) and not is_passing(error):
        if error.code == UNAUTHORIZED:
            return PrivilegeError(f"the user may not do this: grant {grant}", grant=grant)
        return _server_error(error)
    # PyMongo goes on with its timeouts and all that it knows of every member.
    said = str(error).partition(", Timeout:")[0].partition(" (configured timeouts")[0]
    return SourceLost(f"the source cannot be read: {said}")


def _server_error(error: OperationFailure) -> ServerError:
    said = error.details or {}
    fields = {"code_name": said["codeName"]} if "codeName" in said else {}
    return ServerError(str(said.get("errmsg", error)), code=error.code or 0, **fields)
