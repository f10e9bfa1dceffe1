"""Every recorded stream, made again from the recorded log: the same bytes, the same end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import bson
import pytest
from tests.support.recordings import Recording, load, scenarios

import tailrace

REPLICA_SETS = [pair for pair in scenarios() if pair[1] != "sharded"]


@dataclass(frozen=True)
class Stream:
    """One recorded stream, and how to make it again."""

    recording: Recording
    described: dict[str, Any]
    number: str
    oplog: str
    pre_images: str
    shard: str = ""

    @property
    def namespace(self) -> str | None:
        scope = self.described["scope"]
        parts = [scope[part] for part in ("db", "coll") if part in scope]
        return ".".join(parts) if parts else None

    @property
    def documents(self) -> bytes:
        rows = self.recording.documents("documents.bson")
        if not self.shard:
            return b"".join(rows)
        return b"".join(row for row in rows if bson.decode(row)["shard"] == self.shard)

    def events(self) -> list[bytes]:
        return self.recording.documents(f"stream-{self.number}.bson")

    def replay(self) -> Iterator[bytes]:
        files = self.recording.files
        events = tailrace.replay(
            self.recording.file(self.oplog),
            namespace=self.namespace,
            options=self.described["options"],
            pipeline=self.described.get("pipeline"),
            documents=self.documents,
            pre_images=files.get(self.pre_images),
            server_version=self.recording.version,
        )
        return (event.raw for event in events)

    def __str__(self) -> str:
        return f"{self.recording}-{self.number}"


def replica_set_streams() -> Iterator[Stream]:
    for version, scenario in REPLICA_SETS:
        recording = load(version, scenario)
        for described in recording.meta["streams"]:
            number = f"{described['id']:02d}"
            yield Stream(recording, described, number, "oplog.bson", "preimages.bson")


def shard_streams() -> Iterator[Stream]:
    recording = load("6.0.5", "sharded")
    for described in recording.meta["streams"]:
        if described["mode"] != "direct":
            continue
        for shard, facts in described["shards"].items():
            number = f"{shard}-{described['id']:02d}"
            merged = {**described, **facts}
            oplog, images = f"oplog-{shard}.bson", f"preimages-{shard}.bson"
            yield Stream(recording, merged, number, oplog, images, shard)


def named(streams: Iterator[Stream]) -> list[Any]:
    return [pytest.param(stream, id=str(stream)) for stream in streams]


def describe(raw: bytes | None) -> str:
    return "nothing" if raw is None else repr(bson.decode(raw))


def check(stream: Stream) -> None:
    error = stream.described["error"]
    wanted = stream.events()
    made, ended_by = [], None
    try:
        for event in stream.replay():
            made.append(event)
    except tailrace.ServerError as caught:
        ended_by = caught
    for at, (ours, theirs) in enumerate(zip(made, wanted, strict=False)):
        assert ours == theirs, f"event {at}:\nours   {describe(ours)}\ntheirs {describe(theirs)}"
    if error is None:
        assert ended_by is None
        assert len(made) == len(wanted), (
            f"{len(made)} events, the server has {len(wanted)}: the first that differs is "
            f"{describe((made + wanted)[min(len(made), len(wanted))])}"
        )
    else:
        # The server's batch that met the error was lost with the events before it.
        assert len(made) >= len(wanted)
        assert ended_by is not None
        assert (ended_by.code, ended_by.code_name) == (error["code"], error["codeName"])


@pytest.mark.parametrize("stream", named(replica_set_streams()))
def test_a_replica_sets_stream_is_the_servers_byte_for_byte(stream: Stream) -> None:
    check(stream)


@pytest.mark.parametrize("stream", named(shard_streams()))
def test_a_shards_own_stream_is_the_servers_byte_for_byte(stream: Stream) -> None:
    check(stream)
