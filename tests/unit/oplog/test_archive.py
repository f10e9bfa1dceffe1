"""Archives in files, pipes and memory: names, offsets, and how much memory they take."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
import zlib
from pathlib import Path

import bson
import pytest
import zstandard
from tests.support.packing import PACKINGS, Pieces, read_until_broken, zstd

from tailrace.errors import BadArchive
from tailrace.oplog.archive import MAX_ENTRY_BYTES, Archive

ENTRIES = [bson.encode({"op": "i", "n": number, "text": "x" * number}) for number in range(50)]
WHOLE = b"".join(ENTRIES)


@pytest.mark.parametrize("packing", PACKINGS)
def test_an_archive_is_read_from_a_path(packing: str, tmp_path: Path) -> None:
    path = tmp_path / "oplog.bson"
    path.write_bytes(PACKINGS[packing](WHOLE))
    assert list(Archive(path)) == ENTRIES
    assert list(Archive(str(path))) == ENTRIES
    with path.open("rb") as file:
        assert list(Archive(file)) == ENTRIES


@pytest.mark.parametrize("packing", PACKINGS)
def test_an_empty_archive_has_no_entries(packing: str) -> None:
    assert list(Archive(PACKINGS[packing](b""))) == []


def test_the_offset_is_where_the_last_entry_begins() -> None:
    archive = Archive(zstd(WHOLE))
    at = 0
    for entry in archive:
        assert archive.offset == at
        at += len(entry)


@pytest.mark.parametrize("cut", range(1, len(ENTRIES[0])))
def test_an_end_within_an_entry_is_an_error_at_that_entry(cut: int) -> None:
    found, error = read_until_broken(WHOLE[:-cut])
    assert found == ENTRIES[:-1]
    assert error is not None
    assert error.offset == len(WHOLE) - len(ENTRIES[-1])
    assert f"byte {error.offset}" in str(error)


@pytest.mark.parametrize("packing", ["gzip", "zstd with a checksum", "zstd as a stream"])
def test_a_wrong_checksum_comes_after_every_entry(packing: str) -> None:
    packed = bytearray(PACKINGS[packing](WHOLE))
    packed[-5 if packing == "gzip" else -1] ^= 1
    found, error = read_until_broken(bytes(packed))
    assert found == ENTRIES
    assert error is not None
    assert error.offset == len(WHOLE)


@pytest.mark.parametrize("packing", sorted(set(PACKINGS) - {"plain", "gzip padded with zeros"}))
def test_a_missing_last_byte_comes_after_every_entry_that_was_whole(packing: str) -> None:
    found, error = read_until_broken(PACKINGS[packing](WHOLE)[:-1])
    assert error is not None
    assert "cut short" in str(error)
    assert found == ENTRIES[: len(found)]
    if packing in ("gzip", "zstd with a checksum"):
        assert found == ENTRIES


def test_spoilt_gzip_gives_the_entries_before_the_spoilt_byte() -> None:
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(WHOLE) + packer.flush(zlib.Z_FULL_FLUSH)
    found, error = read_until_broken(first + b"\xff" * 20)
    assert found == ENTRIES
    assert error is not None
    assert error.offset == len(WHOLE)


@pytest.mark.parametrize("length", [0, 4, MAX_ENTRY_BYTES + 1, 2**31, 2**32 - 1])
def test_a_length_that_no_entry_has_is_an_error_at_its_byte(length: int) -> None:
    found, error = read_until_broken(WHOLE + length.to_bytes(4, "little") + bytes(100))
    assert found == ENTRIES
    assert error is not None
    assert error.offset == len(WHOLE)
    assert f"{length} bytes long" in str(error)


def test_an_entry_that_does_not_end_with_zero_is_an_error_at_its_byte() -> None:
    found, error = read_until_broken(WHOLE + ENTRIES[0][:-1] + b"\x01")
    assert found == ENTRIES
    assert error is not None
    assert error.offset == len(WHOLE)


def test_an_entry_whose_length_looks_like_gzip_is_an_entry() -> None:
    length = int.from_bytes(b"\x1f\x8b\x08\x00", "little")
    entry = bson.encode({"op": "i", "o": b""})
    entry = bson.encode({"op": "i", "o": bytes(length - len(entry))})
    assert entry.startswith(b"\x1f\x8b\x08\x00")
    assert list(Archive(entry + WHOLE)) == [entry, *ENTRIES]


def test_the_largest_entry_is_read() -> None:
    entry = bson.encode({"o": bytes(MAX_ENTRY_BYTES - len(bson.encode({"o": b""})))})
    assert len(entry) == MAX_ENTRY_BYTES
    assert list(Archive(Pieces(entry, [1 << 16]))) == [entry]


@pytest.mark.parametrize("packing", ["plain", "gzip", "zstd"])
def test_an_archive_of_any_size_takes_the_memory_of_a_few_pieces(packing: str) -> None:
    entry = bson.encode({"o": os.urandom(512) + bytes(1 << 14)})
    count = 2000
    packed = io.BytesIO(PACKINGS[packing](entry * count))
    tracemalloc.start()
    try:
        assert sum(1 for _ in Archive(packed)) == count
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(entry) * count > 32 << 20
    assert peak < 8 << 20


def test_zeros_that_pack_a_thousand_times_are_still_read_in_pieces() -> None:
    """What looks small may unpack to far more than memory; the first entry is broken."""
    for packed in (gzip.compress(bytes(1 << 26)), zstd(bytes(1 << 26))):
        tracemalloc.start()
        try:
            found, error = read_until_broken(packed)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (found, error is not None) == ([], True)
        assert peak < 8 << 20


@pytest.mark.parametrize("packing", ["plain", "gzip", "zstd"])
def test_an_entry_is_handed_out_while_the_pipe_is_still_open(packing: str) -> None:
    if packing == "gzip":
        gz = zlib.compressobj(wbits=31)
        packed = gz.compress(ENTRIES[0]) + gz.flush(zlib.Z_SYNC_FLUSH)
    elif packing == "zstd":
        zst = zstandard.ZstdCompressor().compressobj()
        packed = zst.compress(ENTRIES[0]) + zst.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    else:
        packed = ENTRIES[0]
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as file, os.fdopen(writer, "wb", buffering=0) as pipe:
        pipe.write(packed)
        assert next(iter(Archive(file))) == ENTRIES[0]


def test_what_cannot_be_opened_is_named_with_its_reason(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(BadArchive, match=reason) as raised:
            list(Archive(path))
        assert raised.value.archive == str(path)
        assert raised.value.offset == 0


def test_a_file_that_would_block_is_an_error_and_no_end() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with (
        os.fdopen(reader, "rb", buffering=0) as file,
        os.fdopen(writer, "wb"),
        pytest.raises(BadArchive, match="non-blocking"),
    ):
        list(Archive(file))
