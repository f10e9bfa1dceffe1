"""The benchmark runs, and refuses to measure what is not the server's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "engine.py"
VERBS = ["insert", "update", "replace", "delete", "transactions"]
PATIENCE_S = 240.0


def test_every_verb_is_measured_beside_the_servers_stream(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--events", "150", "--rounds", "1", "--page", str(page)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split()[0] for line in done.stdout.splitlines()[3:]]
    assert rows == VERBS
    assert [line.split()[1] for line in page.read_text().splitlines() if "[" in line] == VERBS


def test_an_unknown_verb_is_named_with_the_known_ones() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--verbs", "upsert"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert "upsert" in done.stderr
    assert "replace" in done.stderr
