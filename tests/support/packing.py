"""Archives for tests: entries packed in every way, and files that give what they are told."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Iterator

import zstandard

from tailrace.errors import BadArchive
from tailrace.oplog.archive import Archive, Source


def zstd(data: bytes, **options: bool | int) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(data)


def zstd_stream(data: bytes) -> bytes:
    """Without a content size, flushed in the middle: what a pipe into zstd makes."""
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    half = len(data) // 2
    return b"".join(
        (
            packer.compress(data[:half]),
            packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK),
            packer.compress(data[half:]),
            packer.flush(),
        )
    )


def in_two(pack: Callable[[bytes], bytes], between: bytes = b"") -> Callable[[bytes], bytes]:
    """Two members or frames behind each other, the data split anywhere."""
    return lambda data: pack(data[: len(data) // 3]) + between + pack(data[len(data) // 3 :])


SKIPPED_FRAME = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "gzip in two members": in_two(gzip.compress),
    "gzip padded with zeros": lambda data: gzip.compress(data) + bytes(512),
    "zstd": zstd,
    "zstd with a checksum": lambda data: zstd(data, write_checksum=True),
    "zstd without a size": lambda data: zstd(data, write_content_size=False),
    "zstd at level 19": lambda data: zstd(data, level=19),
    "zstd as a stream": zstd_stream,
    "zstd in two frames": in_two(zstd),
    "zstd with a frame to skip": in_two(zstd, SKIPPED_FRAME),
    "zstd after a frame to skip": lambda data: SKIPPED_FRAME + zstd(data),
}
"""A name to what packs an archive in this way."""


class Pieces(io.RawIOBase):
    """A file that gives its bytes in pieces of given sizes, the last size again and again."""

    def __init__(self, data: bytes, sizes: Iterable[int]) -> None:
        self._data = data
        self._sizes = iter(sizes)
        self._size = 1
        self.most_asked = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self.most_asked = max(self.most_asked, size)
        self._size = next(self._sizes, self._size)
        piece = self._data[: min(size, self._size)]
        self._data = self._data[len(piece) :]
        return piece


def read_until_broken(source: Source) -> tuple[list[bytes], BadArchive | None]:
    """The entries of an archive, and the error that ended them."""
    entries: list[bytes] = []
    try:
        entries.extend(_each(source))
    except BadArchive as error:
        return entries, error
    return entries, None


def _each(source: Source) -> Iterator[bytes]:
    yield from Archive(source)
