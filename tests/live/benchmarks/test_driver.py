"""The benchmark of the driver runs, and compares with PyMongo in the same run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "driver.py"
PATIENCE_S = 240.0


def test_every_way_to_read_is_measured_beside_pymongos() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--events", "300", "--rounds", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.endswith("x")]
    assert len(rows) == 7
    assert rows[0].endswith("1.00x")
