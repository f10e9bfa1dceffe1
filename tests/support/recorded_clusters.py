"""Recordings of sharded clusters: each shard's files, and what the servers made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import bson
from tests.support.recordings import Recording, load, scenarios

import tailrace

Described = dict[str, Any]


@dataclass(frozen=True)
class RecordedCluster:
    """One recording, and how to make its streams again."""

    recording: Recording

    @property
    def shards(self) -> list[str]:
        return list(self.recording.meta["shards"])

    @property
    def streams(self) -> list[Described]:
        """The option sets, as the recording describes them."""
        return list(self.recording.meta["streams"])

    def files(self, kind: str) -> dict[str, bytes]:
        """Each shard's file of a kind."""
        return {shard: self.recording.file(f"{kind}-{shard}.bson") for shard in self.shards}

    @property
    def documents(self) -> dict[str, bytes]:
        rows: dict[str, list[bytes]] = {shard: [] for shard in self.shards}
        for row in self.recording.documents("documents.bson"):
            rows[bson.decode(row)["shard"]].append(row)
        return {shard: b"".join(each) for shard, each in rows.items()}

    def merged(self, described: Described) -> list[bytes]:
        """The events of an option set on all shards."""
        return self.recording.documents(f"merged-{described['id']:02d}.bson")

    def replay(self, described: Described, **start: Any) -> Iterator[bytes]:
        """The same, made again."""
        events = tailrace.replay(
            self.files("oplog"),
            namespace=namespace_of(described),
            options={**described["options"], **start},
            documents=self.documents,
            pre_images=self.files("preimages"),
            server_version=self.recording.version,
        )
        return (bytes(event.raw) for event in events)


def namespace_of(described: Described) -> str | None:
    """What an option set watches."""
    parts = [described["scope"][part] for part in ("db", "coll") if part in described["scope"]]
    return ".".join(parts) if parts else None


@cache
def clusters() -> list[RecordedCluster]:
    """Every recorded cluster that is kept here."""
    return [
        RecordedCluster(load(version, scenario))
        for version, scenario in scenarios()
        if scenario == "sharded"
    ]
