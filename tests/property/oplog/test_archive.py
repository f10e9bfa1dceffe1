"""Archives of any entries: packed, split, cut and spoilt anywhere."""

from __future__ import annotations

import bson
from hypothesis import given
from hypothesis import strategies as st
from tests.support.packing import PACKINGS, Pieces, read_until_broken

ENTRIES = st.lists(
    st.dictionaries(
        st.text("abcdefgh", min_size=1),
        st.one_of(st.integers(-9, 9), st.binary(max_size=300), st.text(max_size=20)),
        max_size=4,
    ).map(bson.encode),
    max_size=8,
)
PACKED = st.sampled_from(sorted(PACKINGS))


@given(ENTRIES, PACKED, st.lists(st.integers(1, 50), max_size=20))
def test_the_entries_are_the_same_however_they_are_packed_and_split(
    entries: list[bytes], packing: str, sizes: list[int]
) -> None:
    packed = PACKINGS[packing](b"".join(entries))
    assert read_until_broken(Pieces(packed, sizes)) == (entries, None)
    assert read_until_broken(packed) == (entries, None)


@given(ENTRIES, st.data())
def test_a_plain_archive_that_is_cut_gives_the_entries_before_the_cut(
    entries: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(entries)
    cut = data.draw(st.integers(0, len(whole)))
    found, error = read_until_broken(whole[:cut])
    ends = [0]
    for entry in entries:
        ends.append(ends[-1] + len(entry))
    complete = sum(end <= cut for end in ends[1:])
    assert found == entries[:complete]
    if cut == ends[complete]:
        assert error is None
    else:
        assert error is not None
        assert error.offset == ends[complete]


@given(
    ENTRIES.filter(bool), PACKED.filter(lambda name: name.startswith(("gzip", "zstd"))), st.data()
)
def test_a_packed_archive_that_is_cut_never_ends_quietly(
    entries: list[bytes], packing: str, data: st.DataObject
) -> None:
    packed = PACKINGS[packing](b"".join(entries)).rstrip(b"\0" if "padded" in packing else b"")
    cut = data.draw(st.integers(1, len(packed) - 1))
    found, error = read_until_broken(Pieces(packed[:cut], [7]))
    assert found == entries[: len(found)]
    if error is None:
        # Between two frames or members, and there between two entries.
        assert "two" in packing or "skip" in packing


@given(ENTRIES, PACKED, st.data())
def test_a_spoilt_byte_gives_our_error_or_none(
    entries: list[bytes], packing: str, data: st.DataObject
) -> None:
    packed = bytearray(PACKINGS[packing](b"".join(entries)))
    if packed:
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    found, error = read_until_broken(bytes(packed))
    if error is None and packing.startswith("gzip"):
        assert found == entries[: len(found)]


@given(st.binary(max_size=200))
def test_random_bytes_give_our_error_or_entries(noise: bytes) -> None:
    for head in (b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"):
        read_until_broken(head + noise)
