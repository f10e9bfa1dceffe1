"""The recorded clusters, replayed: one stream of all shards, the same bytes, from any place."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import bson
import pytest
from bson.raw_bson import RawBSONDocument
from tests.support.change_streams import differences
from tests.support.effort import effort
from tests.support.recorded_clusters import Described, RecordedCluster, clusters, namespace_of
from tests.support.recordings import split_documents

import tailrace
from tailrace.engine.recorded import RecordedLookups
from tailrace.event.shape import parse_version
from tailrace.raw import document, element, spans
from tailrace.stage.options import Caller, parse_options
from tailrace.stage.shard import ShardStream

CONTROL = {"kNewShardDetected", "migrateChunkToNewShard"}
MIGRATIONS = "showMigrationEvents"


def streams(*, migrations: bool = False) -> list[Any]:
    return [
        pytest.param(cluster, described, id=f"{cluster.recording}-{described['id']:02d}")
        for cluster in clusters()
        for described in cluster.streams
        if (MIGRATIONS in described["options"]) == migrations
    ]


def token_of(event: bytes) -> str:
    return str(bson.decode(event)["_id"]["_data"])


def in_one_order(events: list[bytes]) -> list[bytes]:
    """The events, those of one token in the order of their bytes: the servers' own varies."""
    return [event for _, same in groupby(events, token_of) for event in sorted(same)]


@pytest.mark.parametrize(("cluster", "described"), streams())
def test_all_shards_merged_are_the_servers_byte_for_byte(
    cluster: RecordedCluster, described: Described
) -> None:
    made = list(cluster.replay(described))
    assert not differences(in_one_order(made), in_one_order(cluster.merged(described)))


@pytest.mark.parametrize(("cluster", "described"), streams(migrations=True))
def test_a_merged_stream_shows_no_migrations(
    cluster: RecordedCluster, described: Described
) -> None:
    with pytest.raises(tailrace.ServerError) as refused:
        cluster.replay(described)
    assert refused.value.code == 31123


@pytest.mark.parametrize(("cluster", "described"), streams())
def test_behind_every_token_comes_exactly_the_rest(
    cluster: RecordedCluster, described: Described
) -> None:
    events = in_one_order(cluster.merged(described))
    step = max(1, len(events) // effort(5))
    for place in range(described["id"] % step, len(events), step):
        token = token_of(events[place])
        rest = [event for event in events if token_of(event) > token]
        made = cluster.replay(described, startAfter=bson.decode(events[place])["_id"])
        difference = differences(in_one_order(list(made)), rest)
        assert not difference, f"behind {token}: {difference}"


def without_sort_key(event: bytes) -> bytes:
    parts = spans(event).items()
    return document(
        *(
            element(name, kind, event[start:end])
            for name, (kind, start, end) in parts
            if name != b"$sortKey"
        )
    )


def alone() -> list[Any]:
    return [
        pytest.param(cluster, described, shard, id=f"{cluster.recording}-{described['id']}-{shard}")
        for cluster in clusters()
        for described in cluster.streams
        if described["mode"] == "mongos"
        for shard in cluster.shards
    ]


@pytest.mark.parametrize(("cluster", "described", "shard"), alone())
def test_a_shard_tells_a_router_what_it_tells_a_mongos(
    cluster: RecordedCluster, described: Described, shard: str
) -> None:
    name = f"stream-{shard}-{described['id']:02d}.bson"
    recorded = [RawBSONDocument(event) for event in cluster.recording.documents(name)]
    version = parse_version(cluster.recording.version)
    parsed = parse_options(
        described["options"], namespace_of(described), version, caller=Caller(mongos=True)
    )
    files = {"documents": cluster.recording.file("documents.bson")}
    files["pre_images"] = cluster.files("preimages")[shard]
    lookups = RecordedLookups(parsed.shape, **files)
    stream = ShardStream(parsed, lookups)
    made = list(stream.run(cluster.recording.documents(f"oplog-{shard}.bson")))
    lookups.close()
    theirs = [without_sort_key(event.raw) for event in recorded]
    assert not differences([event.raw for event in made], theirs)
    kinds = [event["operationType"] for event in recorded]
    assert [event.is_control for event in made] == [kind in CONTROL for kind in kinds]


def test_a_shard_whose_archive_starts_too_late_ends_all() -> None:
    for cluster in clusters():
        described = cluster.streams[0]
        oplogs = cluster.files("oplog")
        entries = list(split_documents(oplogs["s2"]))
        later = {**oplogs, "s2": b"".join(entries[len(entries) // 2 :])}
        token = bson.decode(cluster.merged(described)[0])["_id"]
        with pytest.raises(tailrace.ServerError) as lost:
            list(
                tailrace.replay(later, server_version=cluster.recording.version, resume_after=token)
            )
        assert lost.value.code == 286


def test_a_token_that_no_shard_has_is_not_found() -> None:
    for cluster in clusters():
        described = cluster.streams[0]
        token = bson.decode(cluster.merged(described)[3])["_id"]
        token["_data"] = token["_data"].replace("2C010029", "2C01002B04", 1)
        with pytest.raises(tailrace.ServerError) as missing:
            list(cluster.replay(described, resumeAfter=token))
        assert missing.value.code == 280


def test_a_transaction_whose_prepare_left_the_log_ends_all() -> None:
    for cluster in clusters():
        entries = {name: list(split_documents(raw)) for name, raw in cluster.files("oplog").items()}
        prepared = [
            bson.decode(entry) for entry in entries["s2"] if b"\x08prepare\x00\x01" in entry
        ]
        commits = [
            entry
            for entry in map(bson.decode, entries["s2"])
            if entry["o"].get("commitTransaction")
            and entry["prevOpTime"]["ts"] == prepared[0]["ts"]
        ]
        kept = [e for e in entries["s2"] if bson.decode(e)["ts"] > prepared[0]["ts"]]
        shown: list[bytes] = []
        with pytest.raises(tailrace.ServerError) as lost:
            for event in tailrace.replay(
                {**cluster.files("oplog"), "s2": b"".join(kept)},
                server_version=cluster.recording.version,
            ):
                shown.append(bytes(event.raw))
        assert lost.value.code == 286
        assert shown, "what lies before it comes first"
        assert all(bson.decode(event)["clusterTime"] <= commits[0]["ts"] for event in shown)
