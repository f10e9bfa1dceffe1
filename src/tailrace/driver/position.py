"""Where a change stream is: the one cached token, and what a resume starts from.

The rules of "Resume Process" and "Exposing All Resume Tokens", as the profile has
them. A token is cached when what it stands for was handed out, or when a batch was
empty; so what is exposed is always what a resume would use.
"""

from __future__ import annotations

from bson.timestamp import Timestamp

from tailrace.driver.commands import START_TIMES_SINCE_WIRE, Start, Wanted, first_start
from tailrace.driver.profiles import Profile
from tailrace.driver.requests import Document, Token


class Position:
    """How far a stream got, by the rules of one profile."""

    def __init__(self, wanted: Wanted, profile: Profile) -> None:
        self._wanted = wanted
        self._profile = profile
        self._token: Token | None = (
            wanted.resume_after if wanted.start_after is None else wanted.start_after
        )
        self._event: Document | None = None
        """The event whose token counts; looked into when somebody asks."""
        self.delivered = False
        """Whether an event was handed out."""
        self._operation_time: Timestamp | None = first_start(wanted, profile).get(
            "startAtOperationTime"
        )

    @property
    def token(self) -> Token | None:
        """The cached token: what is exposed, and what a resume starts from."""
        if self._event is not None:
            self._token, self._event = self._event["_id"], None
        return self._token

    def opened(self, reply: Document, *, empty: bool, wire_version: int | None) -> None:
        """Take from the first aggregate's reply what a resume without a token needs."""
        knows_times = wire_version is None or wire_version >= START_TIMES_SINCE_WIRE
        if self._operation_time is not None or self._wanted.start or not knows_times:
            return
        bare = empty and "postBatchResumeToken" not in reply["cursor"]
        if bare or self._profile.always_saves_operation_time:
            self._operation_time = reply.get("operationTime")

    def idle(self, batch_token: Token | None) -> None:
        """A batch came without events: everything before its token was seen."""
        if batch_token is not None and self._profile.follows_batch_token:
            self._token, self._event = batch_token, None

    def consumed(self, event: Document, batch_token: Token | None, *, last: bool) -> None:
        """An event was handed out, perhaps the last one of its batch."""
        if last and batch_token is not None and self._profile.follows_batch_token:
            self._token, self._event = batch_token, None
        else:
            self._event = event
        self.delivered = True

    def resume_start(self, wire_version: int | None) -> Start:
        """Where the aggregate of a resume starts."""
        if self.token is not None:
            unseen = self._wanted.start_after is not None and not self.delivered
            return {self._profile.unseen_start_after if unseen else "resumeAfter": self.token}
        knows_times = wire_version is None or wire_version >= START_TIMES_SINCE_WIRE
        if self._operation_time is not None and knows_times:
            return {"startAtOperationTime": self._operation_time}
        return self._wanted.start
