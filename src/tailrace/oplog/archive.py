"""Oplog archives: concatenated BSON entries, as mongodump's ``oplog.bson`` has them.

Plain, gzip or zstd (told apart by their first bytes), from a file or a stream that
can only be read once. Entries are handed out one by one from a buffer of bounded
size; an archive that breaks off gives every entry before the break, and then an
error that says at which byte of the unpacked data it broke.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from tailrace.errors import BadArchive

Source = str | os.PathLike[str] | bytes | BinaryIO
"""A path, ``-`` for standard input, the bytes themselves, or an open binary file."""

STANDARD_INPUT = "-"
CHUNK_BYTES = 1 << 20
MAX_ENTRY_BYTES = (16 << 20) + (64 << 10)
"""A document's 16 MiB, and room for what the oplog puts around it."""
MIN_BSON_BYTES = 5

_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UNREADABLE = (OSError, EOFError, zlib.error, zstandard.ZstdError)


class Archive:
    """The entries of one archive, first to last, once."""

    def __init__(self, source: Source) -> None:
        self.name = _name(source)
        self.offset = 0
        """Where, in the unpacked data, the entry that was handed out last begins."""
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        with contextlib.ExitStack() as stack:
            packed = _open(self._source, stack, self.name)
            yield from self._entries(_unpacked(packed))

    def _entries(self, file: Any) -> Iterator[bytes]:
        buffer, at, base = b"", 0, 0
        while True:
            size = int.from_bytes(buffer[at : at + 4], "little")
            left = len(buffer) - at
            if left >= 4 and not MIN_BSON_BYTES <= size <= MAX_ENTRY_BYTES:
                raise self._broken(base + at, f"no entry is {size} bytes long")
            if left < 4 or left < size:
                chunk = self._read(file, base + len(buffer))
                if not chunk:
                    if left:
                        raise self._broken(base + at, "the archive ends within an entry")
                    return
                base, buffer, at = base + at, buffer[at:] + chunk, 0
                continue
            self.offset = base + at
            entry = buffer[at : at + size]
            if entry[-1]:
                raise self._broken(self.offset, "an entry does not end as BSON does")
            at += size
            yield entry

    def _read(self, file: Any, offset: int) -> bytes:
        try:
            return cast("bytes", file.read(CHUNK_BYTES))
        except _UNREADABLE as error:
            raise self._broken(offset, f"cannot unpack: {error}") from error

    def _broken(self, offset: int, reason: str) -> BadArchive:
        return BadArchive(
            f"{self.name}: {reason} (byte {offset})", offset=offset, archive=self.name
        )


def read_documents(source: Source) -> Iterator[bytes]:
    """The documents of any file of concatenated BSON."""
    return iter(Archive(source))


def _name(source: Source) -> str:
    if isinstance(source, (str, os.PathLike)):
        return "standard input" if source == STANDARD_INPUT else os.fspath(source)
    return "the archive" if isinstance(source, bytes) else str(getattr(source, "name", "a stream"))


def _open(source: Source, stack: contextlib.ExitStack, name: str) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    if source == STANDARD_INPUT:
        return sys.stdin.buffer
    if not isinstance(source, (str, os.PathLike)):
        return source
    try:
        return stack.enter_context(Path(source).open("rb"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadArchive(f"{name}: {reason}", offset=0, archive=name) from error


def _unpacked(file: BinaryIO) -> Any:
    head = file.read(len(_ZSTD_MAGIC))
    whole = cast("BinaryIO", _Rejoined(head, file))
    if head.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=whole)
    if head == _ZSTD_MAGIC:
        return zstandard.ZstdDecompressor().stream_reader(whole, read_across_frames=True)
    return whole


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were read already, put in front again."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._rest.read(size)
