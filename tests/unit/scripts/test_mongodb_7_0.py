"""The script that runs tests on MongoDB 7.0: its words and statuses, without a server."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "mongodb_7_0.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script on a machine where everything is in place."""
    spec = importlib.util.spec_from_file_location("mongodb_7_0", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "prepare", lambda: {"TAILRACE_MONGOD": "wine64 mongod.exe"})
    return module


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("status", [0, 1, 2, 4])
def test_the_status_is_the_commands_own(script: ModuleType, status: int) -> None:
    assert script.main(python(f"raise SystemExit({status})")) == status


def test_the_command_finds_the_server_in_its_environment(script: ModuleType) -> None:
    code = "import os; assert os.environ['TAILRACE_MONGOD'] == 'wine64 mongod.exe'"
    assert script.main(python(code)) == 0


def test_a_run_without_tests_is_no_failure_but_said_aloud(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main(python("raise SystemExit(5)")) == 0
    assert "NO TEST RAN" in capsys.readouterr().err


def test_test_folders_that_are_not_there_are_left_out(
    script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SCRIPT.parents[1])
    words = ["pytest", "tests/house", "tests/nowhere", "tests/house/test_house.py::test_a"]
    assert script.existing(words) == [words[0], words[1], words[3]]
    assert "leaving out tests/nowhere" in capsys.readouterr().err


def test_no_command_is_bad_usage(script: ModuleType) -> None:
    assert script.main([]) == 2


def test_a_machine_that_does_not_allow_it_is_one_line_and_status_0(tmp_path: Path) -> None:
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("a file where a folder should be")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "false"],
        env={**os.environ, "XDG_CACHE_HOME": str(in_the_way)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr.startswith("MongoDB 7.0.28 cannot run here")
    assert done.stderr.count("\n") == 1
