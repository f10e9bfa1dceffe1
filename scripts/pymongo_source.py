"""Fetches PyMongo's source package, which brings the official tests of change streams.

    python scripts/pymongo_source.py

The specification's test files of today come with it (Apache-2.0), and so do PyMongo's
own tests, which our stream has to pass as well. What was fetched once is used again.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

VERSION = "4.20.0"
REQUIREMENT = (
    f"pymongo=={VERSION} "
    "--hash=sha256:f773b0aec28687587cdeda490463a82debc4566a4a3620dcc8dada9d2c0a1acd\n"
)
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
FOLDER = CACHE / f"pymongo-{VERSION}"
FETCH_S = 600


def main(words: Sequence[str]) -> int:
    """Fetch it if it is not here; says where it is."""
    sys.stdout.write(f"{source()}\n")
    return 0


def source() -> Path:
    """The folder of PyMongo's source; fetched when it is not here yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "pymongo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not FOLDER.exists():
            _fetch()
    return FOLDER


def _fetch() -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        wanted = folder / "wanted.txt"
        wanted.write_text(REQUIREMENT)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--no-binary", "pymongo", "--require-hashes"]
        command += ["--dest", str(folder), "-r", str(wanted)]
        subprocess.run(command, check=True, timeout=FETCH_S)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (folder / f"pymongo-{VERSION}").rename(FOLDER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
