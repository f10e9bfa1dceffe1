"""Oplog archives: concatenated BSON entries, as mongodump's ``oplog.bson`` has them.

Plain, gzip or zstd, from a file or a stream that can only be read once. Entries are
handed out one by one, as soon as they are there, from a buffer of bounded size. An
archive that breaks off gives every entry before the break, and then an error that
says at which byte of the unpacked data it broke.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tailrace.errors import BadArchive, BadBson, OptionError
from tailrace.oplog.packing import UNREADABLE, Readable, unpacked

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | Readable
"""A path, ``-`` for standard input, the bytes themselves, or an open binary file."""

IN_MEMORY = (bytes, bytearray, memoryview)
STANDARD_INPUT = "-"
MAX_ENTRY_BYTES = (16 << 20) + (64 << 10)
"""A document's 16 MiB, and room for what the oplog puts around it."""
LENGTH_BYTES = 4
MIN_BSON_BYTES = 5


class Archive:
    """The entries of one archive, first to last, once."""

    def __init__(self, source: Source) -> None:
        self.name = _name(source)
        self.offset = 0
        """Where, in the unpacked data, the entry that was handed out last begins."""
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        with contextlib.ExitStack() as stack:
            pieces = self._pieces(stack)
            buffer, at, base = b"", 0, 0
            while True:
                left = len(buffer) - at
                size = int.from_bytes(buffer[at : at + LENGTH_BYTES], "little")
                if left < LENGTH_BYTES:
                    size = LENGTH_BYTES
                elif not MIN_BSON_BYTES <= size <= MAX_ENTRY_BYTES:
                    raise self._broken(base + at, f"no entry is {size} bytes long")
                if left < size:
                    base += at
                    rest, buffer, at = buffer[at:], b"", 0  # two at a time would be large
                    buffer = self._filled(rest, base, size, pieces)
                    if not buffer:
                        return
                    continue
                self.offset, start, at = base + at, at, at + size
                if buffer[at - 1]:
                    raise self._broken(self.offset, "an entry does not end as BSON does")
                yield buffer[start:at]

    def bad_entry(self, error: BadBson) -> BadArchive:
        """The error of an archive whose entry that was handed out last is no such thing."""
        return BadArchive(
            f"{self.name}: {error} (in the entry at byte {self.offset})",
            offset=self.offset,
            archive=self.name,
        )

    def _filled(self, rest: bytes, base: int, size: int, pieces: Iterator[bytes]) -> bytes:
        """The rest of the buffer and as many pieces as make ``size``; nothing at the end."""
        parts, have = [rest], len(rest)
        while have < size:
            piece = next(pieces, b"")
            if not piece and have:
                raise self._broken(base, "the archive ends within an entry")
            if not piece:
                return b""
            parts.append(piece)
            have += len(piece)
        return b"".join(parts)

    def _pieces(self, stack: contextlib.ExitStack) -> Iterator[bytes]:
        received = 0
        try:
            for piece in unpacked(_open(self._source, stack)):
                received += len(piece)
                yield piece
        except UNREADABLE as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self._broken(received, f"cannot be read: {reason}") from error

    def _broken(self, offset: int, reason: str) -> BadArchive:
        return BadArchive(
            f"{self.name}: {reason} (byte {offset})", offset=offset, archive=self.name
        )


def _name(source: Source) -> str:
    if isinstance(source, (str, os.PathLike)):
        return "standard input" if source == STANDARD_INPUT else os.fspath(source)
    if isinstance(source, IN_MEMORY):
        return "the archive"
    if not hasattr(source, "read") or isinstance(source, io.TextIOBase):
        raise OptionError(
            f"an archive is a path, bytes, or an open binary file, not {type(source).__name__}",
            option="archive",
        )
    return str(getattr(source, "name", "a stream"))


def _open(source: Source, stack: contextlib.ExitStack) -> Readable:
    if isinstance(source, IN_MEMORY):
        return io.BytesIO(source)
    if source == STANDARD_INPUT:
        return sys.stdin.buffer
    if isinstance(source, (str, os.PathLike)):
        return stack.enter_context(Path(source).open("rb"))
    return source
