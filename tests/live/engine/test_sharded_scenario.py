"""All that can happen to a cluster: live and from its archives, the same as its own streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from tests.support.change_streams import differences, server_stream
from tests.support.cluster_scenario import ClusterScenario
from tests.support.cluster_streams import (
    cluster_now,
    in_one_order,
    merged_stream,
    settled,
    shards_merged,
)
from tests.support.mongodb import RESHARDS

import tailrace
from tailrace.embedded import ShardedCluster

pytestmark = pytest.mark.xdist_group("cluster-scenario")

RAW = CodecOptions(document_class=RawBSONDocument)
SYSTEM = {"showExpandedEvents": True, "showSystemEvents": True}
OPTIONS: list[dict[str, Any]] = [{}, {"showExpandedEvents": True}, SYSTEM]
NAMESPACES = [None, "s_gone", "s_gone.t", "s_gone.ab", "s_keep.h"]


@dataclass
class Played:
    """A cluster after the scenario, and what it logged meanwhile."""

    cluster: ShardedCluster
    start: bson.Timestamp
    until: bson.Timestamp
    oplogs: dict[str, bytes]
    pre_images: dict[str, bytes]

    @property
    def options(self) -> dict[str, Any]:
        return {"startAtOperationTime": self.start}


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    with ShardedCluster(noop_interval_s=1) as cluster:
        scenario = ClusterScenario(cluster, "s")
        scenario.set_up()
        start = cluster_now(cluster)
        scenario.run(reshards=RESHARDS)
        until = settled(cluster)
        shards = {name: shard.primary().client for name, shard in cluster.shards.items()}
        yield Played(
            cluster,
            start,
            until,
            {name: dump(client.local["oplog.rs"]) for name, client in shards.items()},
            {name: dump(client.config["system.preimages"]) for name, client in shards.items()},
        )


def dump(collection: Any) -> bytes:
    return b"".join(row.raw for row in collection.with_options(RAW).find())


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "expanded", "system"])
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_the_stream_is_the_merge_of_the_shards_own(
    played: Played, namespace: str | None, options: dict[str, Any]
) -> None:
    given = {**options, **played.options}
    theirs = in_one_order(shards_merged(played.cluster, namespace, given, played.until))
    replayed = tailrace.replay(
        played.oplogs,
        namespace=namespace,
        options=given,
        server_version=played.cluster.version,
    )
    upto = [event for event in map(raw, replayed) if time_of(event) <= played.until]
    assert not differences(in_one_order(upto), theirs)
    live = merged_stream(played.cluster.config.client(), namespace, given, played.until)
    assert live.error is None
    seen = [event for event in live.events if time_of(event) <= played.until]
    assert not differences(in_one_order(seen), theirs)


@pytest.mark.parametrize("shard", ["s1", "s2", "s3"])
def test_a_shards_own_stream_shows_migrations_too(played: Played, shard: str) -> None:
    given = {**SYSTEM, "showMigrationEvents": True, **played.options}
    client = played.cluster.shards[shard].primary().client
    theirs = server_stream(client, None, given, until=played.until).events
    replayed = tailrace.replay(
        played.oplogs[shard], options=given, server_version=played.cluster.version
    )
    upto = [event for event in map(raw, replayed) if time_of(event) <= played.until]
    assert not differences(upto, [event for event in theirs if time_of(event) <= played.until])


def test_images_come_from_the_shard_that_kept_them(played: Played) -> None:
    wanted = {"fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable"}
    given = {**wanted, **played.options}
    theirs = shards_merged(played.cluster, "s_keep.h", given, played.until)
    replayed = tailrace.replay(
        played.oplogs,
        namespace="s_keep.h",
        options=given,
        pre_images=played.pre_images,
        server_version=played.cluster.version,
    )
    assert not differences(in_one_order(list(map(raw, replayed))), in_one_order(theirs))
    live = merged_stream(played.cluster.config.client(), "s_keep.h", given, played.until)
    assert not differences(in_one_order(live.events), in_one_order(theirs))


def raw(event: RawBSONDocument) -> bytes:
    return bytes(event.raw)


def time_of(event: bytes) -> bson.Timestamp:
    return bson.decode(event)["clusterTime"]
