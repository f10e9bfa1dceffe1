"""``tailrace watch`` on a sharded cluster: one address, or each shard's; and its metrics."""

from __future__ import annotations

import json
import signal
import urllib.request
from typing import Any

import pytest
from tests.support.command_line import start_tailrace
from tests.support.waiting import eventually

from tailrace.embedded import ShardedCluster
from tailrace.embedded.ports import free_port

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.mark.parametrize("by", ["config server", "shards"])
def test_a_cluster_is_watched_and_measured(
    cluster: ShardedCluster, cluster_database: str, by: str
) -> None:
    namespace = f"{cluster_database}.things"
    cluster.shard_collection(namespace, {"k": 1})
    cluster.move_range(namespace, "s2", {"k": 50})
    port = free_port()
    uris = [cluster.uri] if by == "config server" else [s.uri for s in cluster.shards.values()]
    process = start_tailrace(
        "watch", *uris, "--namespace", cluster_database, "--metrics-port", str(port)
    )
    assert process.stdout is not None
    try:
        eventually(lambda: metrics(port), "metrics")
        for number in range(4):
            cluster.insert(namespace, {"_id": number, "k": 30 * number})
        keys = [json.loads(process.stdout.readline())["documentKey"] for _ in range(4)]
        assert [int(key["_id"]["$numberInt"]) for key in keys] == [0, 1, 2, 3]
        found = eventually(lambda: counted(port), "the events in the metrics")
        assert 'tailrace_shard_behind_seconds{shard="s1"}' in found
        assert 'tailrace_shard_waiting_events{shard="s2"}' in found
        assert "tailrace_lag_seconds" in found
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


def metrics(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def counted(port: int) -> Any:
    text = metrics(port)
    return text if "tailrace_events_total 4" in text else None
