"""Recorded streams run through the stages: whole, from a place, and in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any

import bson
from tests.support.recordings import Recording, load, scenarios

import tailrace
from tailrace.engine.recorded import RecordedLookups
from tailrace.event.shape import parse_version
from tailrace.stage.options import parse_options
from tailrace.stage.shard import ShardStream

STARTS = ("resumeAfter", "startAfter", "startAtOperationTime")


@dataclass(frozen=True)
class RecordedStream:
    """One recorded stream of a replica set, or of one shard of a cluster by itself."""

    recording: Recording
    described: Mapping[str, Any]
    shard: str = ""

    @property
    def namespace(self) -> str | None:
        scope = self.described["scope"]
        parts = [scope[part] for part in ("db", "coll") if part in scope]
        return ".".join(parts) if parts else None

    @property
    def number(self) -> str:
        """The number in its file's name."""
        return "-".join([*filter(None, [self.shard]), f"{self.described['id']:02d}"])

    @property
    def events(self) -> list[bytes]:
        """The server's events."""
        return self.recording.documents(f"stream-{self.number}.bson")

    @property
    def entries(self) -> list[bytes]:
        """The log."""
        return self.recording.documents(self._file("oplog"))

    @property
    def documents(self) -> list[bytes]:
        """What there was in the end, row by row."""
        rows = self.recording.documents("documents.bson")
        return [row for row in rows if not self.shard or bson.decode(row)["shard"] == self.shard]

    def _file(self, name: str) -> str:
        return f"{name}-{self.shard}.bson" if self.shard else f"{name}.bson"

    def options(self, **start: Any) -> dict[str, Any]:
        """Its options; with another start, when one is given."""
        options = dict(self.described["options"])
        if start:
            options = {name: value for name, value in options.items() if name not in STARTS}
        return {**options, **start}

    def replayed(self, documents: list[bytes] | None = None, **start: Any) -> Iterator[bytes]:
        """The events from a start, as they come; documents may be given in another form."""
        rows = self.documents if documents is None else documents
        found = tailrace.replay(
            self.recording.file(self._file("oplog")),
            namespace=self.namespace,
            options=self.options(**start),
            pipeline=self.described.get("pipeline"),
            documents=b"".join(rows),
            pre_images=self.recording.files.get(self._file("preimages")),
            server_version=self.recording.version,
        )
        return (event.raw for event in found)

    def replay(self, **start: Any) -> list[bytes]:
        """All events from a start."""
        return list(self.replayed(**start))

    def in_batches(self, batches: Iterable[list[bytes]]) -> Iterator[tuple[list[bytes], str]]:
        """The events of each batch of entries, and the token behind them."""
        version = parse_version(self.recording.version)
        options = parse_options(self.options(), self.namespace, version)
        lookups = RecordedLookups(
            options.shape,
            documents=b"".join(self.documents),
            pre_images=self.recording.files.get(self._file("preimages")),
        )
        stages = ShardStream(options, lookups)
        with closing(lookups):
            for batch in batches:
                yield [event.raw for event in stages.run(batch)], stages.position[0].decode()

    def __str__(self) -> str:
        return f"{self.recording}-{self.number}"


@cache
def longest() -> list[RecordedStream]:
    """Of each recording the stream with the most events that ended without an error."""
    found = []
    for version, scenario in scenarios():
        recording = load(version, scenario)
        if "oplog.bson" not in recording.files:
            continue
        streams = [
            RecordedStream(recording, described)
            for described in recording.meta["streams"]
            if not described.get("pipeline") and described["error"] is None
        ]
        found.append(max(streams, key=lambda stream: len(stream.events)))
    return found


def token_of(event: bytes) -> dict[str, Any]:
    """The token of an event."""
    token = bson.decode(event)["_id"]
    assert isinstance(token, dict)
    return token
