"""PyMongo's own tests of change streams pass when their streams are ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import pymongo_suite
from tests.support.conformance import Record
from tests.support.pymongo_source import pymongo_tests

from tailrace.embedded import ReplicaSet

PASSING = {"test.test_change_stream": 126, "test.asynchronous.test_change_stream": 117}
"""How many pass on 6.0.5, PyMongo's own stream included; newer servers admit more."""
FEWEST_STREAMS = 100
"""A run that opens fewer streams of ours has not tested ours."""
PATIENCE_S = 550.0


@pytest.mark.parametrize("module", PASSING)
def test_a_suite_of_pymongos_passes_on_our_streams(
    module: str, tmp_path: Path, record: Record
) -> None:
    (tmp_path / "test").symlink_to(pymongo_tests())
    result = tmp_path / "result.json"
    with ReplicaSet(noop_interval_s=1) as replica_set:
        host, _, port = replica_set.nodes[0].address.partition(":")
        done = subprocess.run(
            [sys.executable, pymongo_suite.__file__, str(tmp_path), module, str(result)],
            env={**os.environ, "DB_IP": host, "DB_PORT": port},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert result.exists(), done.stderr[-4000:]
    outcome = json.loads(result.read_text())
    assert not outcome["failed"], "\n".join(f"{k}\n{v}" for k, v in outcome["failed"].items())
    assert outcome["run"] - len(outcome["skipped"]) >= PASSING[module]
    assert outcome["opened"] >= FEWEST_STREAMS
    passed = outcome["run"] - len(outcome["skipped"])
    record("pymongo", module, f"{passed} of {outcome['run']} on {replica_set.version}")
