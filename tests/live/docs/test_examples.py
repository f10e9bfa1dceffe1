"""What the documentation shows works: its Python and its commands, on a real server."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command_line import tailrace

from tailrace.embedded import ReplicaSet

REPOSITORY = Path(__file__).resolve().parents[3]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^    |`)tailrace (replay .*?)(?:`|$)", re.MULTILINE)
ADDRESS = "mongodb://localhost:27017"


def page(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


def run_python(text: str) -> None:
    for number, code in enumerate(PYTHON.findall(text)):
        exec(compile(code, f"example {number}", "exec"), {"__name__": "example"})


def test_the_way_from_a_server_to_its_events(
    start_replica_set: Callable[..., ReplicaSet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    replica_set = start_replica_set()
    replica_set.client().shop.orders.insert_one({"_id": 1})
    start = page("docs/start.md")
    assert ADDRESS in start
    run_python(start.replace(ADDRESS, replica_set.uri))
    run_python(page("README.md"))
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("insert {'_data': '82")
    assert out[1].startswith("insert Timestamp(")
    commands = COMMAND.findall(start + page("README.md"))
    assert len(commands) >= 2
    for command in commands:
        result = tailrace(*shlex.split(command))
        assert (result.status, result.err) == (0, "")
        assert b"shop" in result.out


def test_the_guide_to_servers_for_tests(capsys: pytest.CaptureFixture[str]) -> None:
    run_python(page("docs/guides/embedded-servers.md"))
    assert re.fullmatch(r"\d+\.\d+\.\d+ 1\n", capsys.readouterr().out)


def test_the_guide_to_watching(
    start_replica_set: Callable[..., ReplicaSet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    guide = page("docs/guides/driver.md")
    assert ADDRESS in guide
    code = guide.replace(ADDRESS, start_replica_set(noop_interval_s=1).uri)
    exec("\n".join(PYTHON.findall(code)) + "\nclient.close()", {"__name__": "example"})
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == ["insert", "{'_id': 2}"]
    assert out[-1] == "3"
