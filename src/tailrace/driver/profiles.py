"""What the versions of the driver specification do differently, as one table.

A profile is a row of ``PROFILES``; the machine reads the row and knows no version. Where
the text of 1.6.0 and its tests differ, the tests win: a token is cached when it is
consumed (prose tests 12 and 14 to 16: before that the user's own start option shows),
and the label NonResumableChangeStreamError is obeyed (its errors test), without which
a stream that lost its ``_id`` would be resumed for ever.

Sources: change-streams-1.5.1.rst, change-streams-1.6.0.rst, and the specification of
today (facts/driver.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tailrace.driver.requests import Failure, Kind

CURSOR_NOT_FOUND = 43
BLOCKED_CODES = frozenset(
    (
        136,  # CappedPositionLost
        237,  # CursorKilled
        11601,  # Interrupted
    )
)
"""Until 1.8.0 every other error of a getMore was resumable."""
ALLOWED_CODES = frozenset(
    (
        6,  # HostUnreachable
        7,  # HostNotFound
        63,  # StaleShardVersion
        89,  # NetworkTimeout
        91,  # ShutdownInProgress
        133,  # FailedToSatisfyReadPreference
        150,  # StaleEpoch
        189,  # PrimarySteppedDown
        234,  # RetryChangeStream
        262,  # ExceededTimeLimit
        9001,  # SocketException
        10107,  # NotWritablePrimary
        11600,  # InterruptedAtShutdown
        11602,  # InterruptedDueToReplStateChange
        13388,  # StaleConfig
        13435,  # NotPrimaryNoSecondaryOk
        13436,  # NotPrimaryOrSecondary
    )
)
"""Since 1.8.0, on servers that do not label their errors."""
RESUMABLE_LABEL = "ResumableChangeStreamError"
NON_RESUMABLE_LABEL = "NonResumableChangeStreamError"
LABELS_SINCE_WIRE = 9
"""MongoDB 4.4: from here on the server says itself what is resumable."""
PASSING_MESSAGES = ("not master", "node is recovering")
FRUITLESS_RESUMES = 10
"""How often one server error may follow another with no batch in between, where nearly
every error is resumable: a stream that cannot go on must not be resumed for ever."""


def resumable_in_1_5_1(failure: Failure) -> bool:
    """1.5.1: all but three codes, and whatever says that it is no primary."""
    passing = any(words in failure.message for words in PASSING_MESSAGES)
    return passing or resumable_in_1_6_0(failure)


def resumable_in_1_6_0(failure: Failure) -> bool:
    """1.6.0: all but three codes, and what the server labels as final."""
    if failure.kind is not Kind.SERVER:
        return True
    return failure.code not in BLOCKED_CODES and NON_RESUMABLE_LABEL not in failure.labels


def resumable_now(failure: Failure) -> bool:
    """Today: what the server labels; on old servers a list of codes; 43 always."""
    if failure.kind is not Kind.SERVER or failure.code == CURSOR_NOT_FOUND:
        return True
    if failure.wire_version is None or failure.wire_version >= LABELS_SINCE_WIRE:
        return RESUMABLE_LABEL in failure.labels
    return failure.code in ALLOWED_CODES


@dataclass(frozen=True, slots=True)
class Profile:
    """One version of the specification: everything in which it differs from the others."""

    name: str
    resumable: Callable[[Failure], bool]
    """Which errors of a getMore are answered with a resume."""
    sends_default_full_document: bool
    """Whether ``fullDocument: "default"`` is sent when nothing was asked for."""
    starts_at_last_operation: bool
    """Whether the first aggregate carries the session's last operation time."""
    always_saves_operation_time: bool
    """Whether that of the first reply is saved also when it brought events or a token."""
    follows_batch_token: bool
    """Whether a batch's own token (PBRT) is cached, exposed, and resumed from."""
    unseen_start_after: str
    """What a stream started with ``startAfter`` is resumed with before its first event."""
    most_fruitless: int | None = None
    """How many server errors in a row are resumed; None: all of them."""


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "1.5.1",
            resumable_in_1_5_1,
            sends_default_full_document=True,
            starts_at_last_operation=True,
            always_saves_operation_time=True,
            follows_batch_token=False,
            unseen_start_after="startAfter",  # an option of 1.5.2; 1.5.1 does not say
            most_fruitless=FRUITLESS_RESUMES,
        ),
        Profile(
            "1.6.0",
            resumable_in_1_6_0,
            sends_default_full_document=True,
            starts_at_last_operation=False,
            always_saves_operation_time=False,
            follows_batch_token=True,
            unseen_start_after="resumeAfter",
            most_fruitless=FRUITLESS_RESUMES,
        ),
        Profile(
            "current",
            resumable_now,
            sends_default_full_document=False,
            starts_at_last_operation=False,
            always_saves_operation_time=False,
            follows_batch_token=True,
            unseen_start_after="startAfter",
        ),
    )
}
"""Every profile by its name."""
DEFAULT_PROFILE = "current"
