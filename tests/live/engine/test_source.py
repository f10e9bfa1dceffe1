"""What a deployment is taken for."""

from __future__ import annotations

import pytest

from tailrace.embedded import ShardedCluster
from tailrace.engine.source import probe
from tailrace.errors import UnsupportedSource
from tailrace.oplog.deployment import Deployment

pytestmark = pytest.mark.xdist_group("cluster")


def test_a_config_server_is_not_taken_for_a_replica_set_of_documents(
    cluster: ShardedCluster,
) -> None:
    config = Deployment(cluster.config.client())
    with pytest.raises(UnsupportedSource) as refused:
        probe(config)
    assert "config server" in str(refused.value)
    assert probe(config, is_catalog=True).applied
    assert probe(Deployment(cluster.shards["s1"].client())).applied
