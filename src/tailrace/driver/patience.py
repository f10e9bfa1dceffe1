"""How long to wait before the next attempt, and when to give up: ``on_error="keep-trying"``.

The specification resumes once and then tells the caller. Whoever asks for more gets
pauses that double up to a cap, each shortened by chance so that many streams do not
come back at once, and a deadline counted from the first error. No clock and no dice
here: both are passed in.
"""

from __future__ import annotations

from collections.abc import Callable

from tailrace.driver.requests import Failure, Kind

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
"""About as long as an election takes: longer pauses would only add to the outage."""
RETRYABLE_READ_CODES = frozenset(
    (
        6,  # HostUnreachable
        7,  # HostNotFound
        89,  # NetworkTimeout
        91,  # ShutdownInProgress
        134,  # ReadConcernMajorityNotAvailableYet
        189,  # PrimarySteppedDown
        262,  # ExceededTimeLimit
        9001,  # SocketException
        10107,  # NotWritablePrimary
        11600,  # InterruptedAtShutdown
        11602,  # InterruptedDueToReplStateChange
        13435,  # NotPrimaryNoSecondaryOk
        13436,  # NotPrimaryOrSecondary
    )
)
"""What the retryable reads specification retries once, and patience for longer."""


class Patience:
    """The attempts since things last went well."""

    def __init__(
        self,
        give_up_after_s: float | None,
        clock: Callable[[], float],
        dice: Callable[[], float],
    ) -> None:
        self._give_up_after_s = give_up_after_s
        self._clock = clock
        self._dice = dice
        self._attempts = 0
        self._since = 0.0

    def bears(self, failure: Failure) -> bool:
        """Whether to try again after this one; counts it."""
        if not may_pass(failure):
            return False
        now = self._clock()
        if not self._attempts:
            self._since = now
        if self._give_up_after_s is not None and now - self._since >= self._give_up_after_s:
            return False
        self._attempts += 1
        return True

    def pause_s(self) -> float:
        """How long to wait before the next attempt; 0 when nothing went wrong."""
        if not self._attempts:
            return 0.0
        doublings = min(self._attempts - 1, 30)
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * (1 << doublings))
        return longest * (1 + self._dice()) / 2

    def calm(self) -> None:
        """It went well: the next error is a first one."""
        self._attempts = 0


def may_pass(failure: Failure) -> bool:
    """Whether another attempt, perhaps at another server, can help."""
    return failure.kind is not Kind.SERVER or failure.code in RETRYABLE_READ_CODES


def retried_as_read(failure: Failure) -> bool:
    """Whether a failed aggregate is sent once more: no server was even found otherwise."""
    return failure.kind is not Kind.SELECTION and may_pass(failure)
