"""Every recorded stream, made again from the recorded log: the same bytes, the same end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from tests.support.recorded_streams import RecordedStream
from tests.support.recordings import load, scenarios

import tailrace

RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
REPLICA_SETS = [pair for pair in scenarios() if pair[1] != "sharded"]


def replica_set_streams() -> Iterator[RecordedStream]:
    for version, scenario in REPLICA_SETS:
        recording = load(version, scenario)
        for described in recording.meta["streams"]:
            yield RecordedStream(recording, described)


def shard_streams() -> Iterator[RecordedStream]:
    recording = load("6.0.5", "sharded")
    for described in recording.meta["streams"]:
        if described["mode"] != "direct":
            continue
        for shard, facts in described["shards"].items():
            yield RecordedStream(recording, {**described, **facts}, shard)


def named(streams: Iterable[RecordedStream]) -> list[Any]:
    return [pytest.param(stream, id=str(stream)) for stream in streams]


def describe(raw: bytes | None) -> str:
    return "nothing" if raw is None else repr(bson.decode(raw))


def check(stream: RecordedStream, documents: list[bytes] | None = None) -> None:
    error = stream.described["error"]
    wanted = stream.events
    made, ended_by = [], None
    try:
        for event in stream.replayed(documents):
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
def test_a_replica_sets_stream_is_the_servers_byte_for_byte(stream: RecordedStream) -> None:
    check(stream)


@pytest.mark.parametrize("stream", named(shard_streams()))
def test_a_shards_own_stream_is_the_servers_byte_for_byte(stream: RecordedStream) -> None:
    check(stream)


def looks_up(stream: RecordedStream) -> bool:
    return stream.described["options"].get("fullDocument") == "updateLookup"


@pytest.mark.parametrize("stream", named(filter(looks_up, replica_set_streams())))
def test_documents_without_the_uuid_of_their_collection_are_found_by_name(
    stream: RecordedStream,
) -> None:
    rows = [bson.decode(row, RAW) for row in stream.documents]
    check(stream, [bson.encode({"ns": row["ns"], "doc": row["doc"]}) for row in rows])
