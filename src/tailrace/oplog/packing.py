"""Bytes out of plain, gzip or zstd data, told apart by the first of them.

``unpacked`` hands out what it has as soon as it has it, in pieces of bounded size:
a source may be a pipe that is still being written to. Data that is cut short or
corrupt gives all that can be had before the break, and then raises. So a zstd frame
is decoded block by block, and gzip data byte by byte once it fails.

Formats: RFC 1952 and RFC 8878. Nothing here knows what the bytes mean.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import zstandard

PIECE_BYTES = 1 << 20
HEAD_BYTES = 16

GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
"""A zstd frame that carries no data."""
PLAIN_AFTER_ALL = re.compile(rb".{4}[\x02-\x12](?:_id|lsid|ns|op|ts)\x00", re.DOTALL)
"""A document whose length, 559,903 bytes, looks like gzip: its first field gives it away."""

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_ZSTD_FCS_BYTES = (0, 2, 4, 8)
_ZSTD_DICTIONARY_BYTES = (0, 1, 2, 4)
_ZSTD_REPEATED_BYTE = 1
UNREADABLE = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What ``unpacked`` raises when the data cannot be read or unpacked."""


class Readable(Protocol):
    """An open binary file, or anything that is read like one."""

    def read(self, size: int, /) -> bytes | None:
        """At most so many bytes, waiting for the first of them; none at the end."""


def unpacked(file: Readable) -> Iterator[bytes]:
    """The data in pieces, none of them empty; raises one of ``UNREADABLE`` where it breaks."""
    source = _Source(file)
    head = source.peek(HEAD_BYTES)
    if head.startswith(GZIP_MAGIC) and not PLAIN_AFTER_ALL.match(head):
        return filter(None, _gzip(source))
    if head.startswith(ZSTD_MAGIC) or SKIPPABLE.match(head):
        return filter(None, _zstd(source))
    return iter(source.some, b"")


class _Source:
    """The packed bytes: as they come, or exactly so many."""

    def __init__(self, file: Readable) -> None:
        self._read: Callable[[int], bytes | None] = getattr(file, "read1", file.read)
        self._ahead = b""

    def some(self) -> bytes:
        """The next bytes that are there; none at the end."""
        if self._ahead:
            found, self._ahead = self._ahead, b""
            return found
        return self._more()

    def exactly(self, count: int) -> bytes:
        """So many bytes, or an end that is too early."""
        found = self.peek(count)
        if len(found) < count:
            raise EOFError("the packed data is cut short")
        self._ahead = self._ahead[count:]
        return found

    def peek(self, count: int) -> bytes:
        """So many bytes, or all that is left, without taking them."""
        while len(self._ahead) < count and (more := self._more()):
            self._ahead += more
        return self._ahead[:count]

    def _more(self) -> bytes:
        found = self._read(PIECE_BYTES)
        if found is None:
            raise BlockingIOError("a non-blocking file cannot be read")
        return found


def _gzip(source: _Source) -> Iterator[bytes]:
    packed = source.some()
    while packed.strip(b"\x00"):
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            packed = packed or source.some()
            if not packed:
                raise EOFError("the packed data is cut short")
            before = member.copy()
            try:
                piece = member.decompress(packed, PIECE_BYTES)
            except zlib.error:
                yield from (before.decompress(packed[at : at + 1]) for at in range(len(packed)))
                raise
            yield piece
            packed = member.unconsumed_tail
        packed = member.unused_data or source.some()


def _zstd(source: _Source) -> Iterator[bytes]:
    while magic := source.peek(len(ZSTD_MAGIC)):
        if SKIPPABLE.match(magic):
            size = int.from_bytes(source.exactly(8)[4:], "little")
            while size:
                size -= len(source.exactly(min(size, PIECE_BYTES)))
            continue
        header, has_checksum = _zstd_header(source)
        frame = zstandard.ZstdDecompressor().decompressobj()
        yield frame.decompress(header)
        is_last = 0
        while not is_last:
            block = source.exactly(3)
            described = int.from_bytes(block, "little")
            is_last, kind, size = described & 1, described >> 1 & 3, described >> 3
            yield frame.decompress(
                block + source.exactly(1 if kind == _ZSTD_REPEATED_BYTE else size)
            )
        if has_checksum:
            yield frame.decompress(source.exactly(4))


def _zstd_header(source: _Source) -> tuple[bytes, bool]:
    """A frame's header, and whether its content is followed by a checksum."""
    magic, descriptor = source.peek(5)[:4], source.exactly(5)[4]
    single = descriptor >> 5 & 1
    size = _ZSTD_FCS_BYTES[descriptor >> 6] or single
    size += _ZSTD_DICTIONARY_BYTES[descriptor & 3] + 1 - single
    return magic + bytes((descriptor,)) + source.exactly(size), bool(descriptor & 4)
