"""Recordings of real servers (``tests/data/recordings``), read once and kept in memory.

A recording is one scenario that ran against one server version: its oplog, the change
streams that the server itself made of it, and a description (``meta.json``). The
README beside the data says which files each has.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import zstandard

FOLDER = Path(__file__).resolve().parents[1] / "data" / "recordings"


@dataclass(frozen=True)
class Recording:
    """One scenario of one server version."""

    version: str
    scenario: str
    files: dict[str, bytes]

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What ``meta.json`` says of the streams."""
        return json.loads(self.files["meta.json"])

    @property
    def names(self) -> list[str]:
        """The names of its files, sorted."""
        return sorted(self.files)

    def file(self, name: str) -> bytes:
        """One file's bytes."""
        return self.files[name]

    def documents(self, name: str) -> list[bytes]:
        """The raw BSON documents of one file, in order."""
        return list(split_documents(self.files[name]))

    def __str__(self) -> str:
        return f"{self.version}-{self.scenario}"


def scenarios() -> list[tuple[str, str]]:
    """Every (version, scenario) that is kept here, sorted."""
    return sorted(
        (path.parent.name, path.name.removesuffix(".tar.zst"))
        for path in FOLDER.glob("*/*.tar.zst")
    )


@cache
def load(version: str, scenario: str) -> Recording:
    """One recording, unpacked in memory."""
    packed = (FOLDER / version / f"{scenario}.tar.zst").read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as reader:
        unpacked = reader.read()
    files = {}
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
        for member in archive:
            handle = archive.extractfile(member)
            if handle is not None:
                files[Path(member.name).name] = handle.read()
    return Recording(version, scenario, files)


def split_documents(data: bytes) -> Iterator[bytes]:
    """Each document of concatenated BSON."""
    at = 0
    while at < len(data):
        end = at + int.from_bytes(data[at : at + 4], "little")
        assert at + 5 <= end <= len(data), f"not a BSON document at byte {at}"
        yield data[at:end]
        at = end
