"""The benchmark of many shards runs, and counts what it measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "router.py"
PATIENCE_S = 240.0


def test_simulated_and_real_shards_are_measured() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--events", "300", "--simulated", "1,5", "--real", "2"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [
        ["simulated", "1"],
        ["simulated", "5"],
        ["real", "2"],
    ]
