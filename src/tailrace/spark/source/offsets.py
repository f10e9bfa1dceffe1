"""How far a query has read: the source's offset, and how it is written down.

The form is frozen and versioned, and made to be read by people as well:

    {"version": 1, "cut": "Timestamp(1763500000, 7)",
     "shards": {"rs0": {"from": "Timestamp(1763500000, 7)", "until": "Timestamp(1763500001, 2)"}}}

``cut`` is a cluster time: all that became visible at or before it is in. ``from`` is the
time behind which the shard's next scan starts, ``until`` the last time that was scanned.
Both name entries of the shard's log, so that what left the log, and a log that is not the
one of the checkpoint, are noticed. A query's first offset also says where it ``began``:
"now" is another moment after a crash. ``after`` is a token that a query starts after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.errors import CheckpointError

VERSION = 1
"""The form above. A reader refuses every other one, and says so."""
_TIME = re.compile(r"Timestamp\((\d{1,10}), ?(\d{1,10})\)\Z")
_MAX_PART = 0xFFFF_FFFF


def format_time(time: int) -> str:
    """A cluster time as people read it, ``Timestamp(seconds, increment)``."""
    return f"Timestamp({time >> 32}, {time & _MAX_PART})"


def parse_time(text: str) -> int | None:
    """The cluster time of such a text, as seconds << 32 | increment; None for any other text."""
    found = _TIME.match(text.strip())
    if found is None:
        return None
    seconds, increment = map(int, found.groups())
    if seconds > _MAX_PART or increment > _MAX_PART:
        return None
    return seconds << 32 | increment


@dataclass(frozen=True, slots=True)
class ShardOffset:
    """How far one shard's log was read."""

    start: int
    """The next scan starts behind this entry (``from``)."""
    until: int
    """The last entry that was scanned; it never falls."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A place between two batches, for all shards at once."""

    cut: int
    shards: Mapping[str, ShardOffset]
    after: str | None = None
    """The token that a query starts behind; only where a query begins."""
    began: Offset | None = None
    """Where the query began; only in its first batch's end."""

    @classmethod
    def parse(cls, written: Mapping[str, Any] | str) -> Offset:
        """An offset from its JSON, or from what that decodes to."""
        said = _decoded(written)
        version = said.get("version")
        if version != VERSION:
            raise CheckpointError(
                f"an offset of form {version!r}: this release reads form {VERSION}", version=version
            )
        began, after = said.get("began"), said.get("after")
        return cls(
            _time_in(said, "cut"),
            {
                name: ShardOffset(_time_in(shard, "from"), _time_in(shard, "until"))
                for name, shard in _mapping_in(said, "shards").items()
            },
            None if after is None else str(after),
            None if began is None else cls.parse(began),
        )

    @property
    def document(self) -> dict[str, Any]:
        """What is written as JSON."""
        said: dict[str, Any] = {
            "version": VERSION,
            "cut": format_time(self.cut),
            "shards": {
                name: {"from": format_time(shard.start), "until": format_time(shard.until)}
                for name, shard in sorted(self.shards.items())
            },
        }
        if self.after is not None:
            said["after"] = self.after
        if self.began is not None:
            said["began"] = self.began.document
        return said

    @property
    def text(self) -> str:
        """The JSON, in one line."""
        return json.dumps(self.document)


def batch(start: Mapping[str, Any] | str, end: Mapping[str, Any] | str) -> tuple[Offset, Offset]:
    """The two ends of a batch. The first one begins where its end says, not where asked anew."""
    last = Offset.parse(end)
    return (last.began or Offset.parse(start)), last


def _decoded(written: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(written, str):
        try:
            written = json.loads(written)
        except ValueError as error:
            raise CheckpointError(f"an offset that is not JSON: {error}") from error
    if not isinstance(written, Mapping):
        raise CheckpointError("an offset that is not a JSON object")
    return written


def _mapping_in(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = said.get(name)
    if not isinstance(found, Mapping) or not all(isinstance(x, Mapping) for x in found.values()):
        raise CheckpointError(f"an offset whose {name} is no object of objects", field=name)
    return found


def _time_in(said: Mapping[str, Any], name: str) -> int:
    found = said.get(name)
    time = parse_time(found) if isinstance(found, str) else None
    if time is None:
        raise CheckpointError(f"an offset whose {name} is no Timestamp(t, i)", field=name)
    return time
