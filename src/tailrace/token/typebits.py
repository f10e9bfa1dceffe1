"""Type bits: what a KeyString leaves out of its bytes because it does not sort.

``1``, ``1L`` and ``1.0`` have the same key bytes; one stream of bits, filled in the
order of the values, tells them apart. While a key is built the stream is a
``bytearray`` of ``0`` and ``1`` characters; packed, bit *i* lies in byte *i/8* at
place *i%8*, and a stream without a single 1 is left out altogether.

Spec: facts/server-semantics, 1.5.
"""

from __future__ import annotations

from tailrace.errors import BadToken

OVERFLOW = 15
TOO_FEW_BITS = 50615
SHORT_BYTES = 0x7F
"""The longest stream, in bytes, whose length fits in the mark itself."""


def pack(bits: bytes | bytearray) -> bytes:
    """The serialised form of a stream of ``0`` and ``1`` characters; ``b""`` when all are 0."""
    if b"1" not in bits:
        return b""
    size = (len(bits) + 7) >> 3
    packed = int(bits[::-1], 2).to_bytes(size, "little")
    if size == 1 and packed[0] <= SHORT_BYTES:
        return packed
    if size <= SHORT_BYTES:
        return b"%c%b" % (0x80 | size, packed)
    return b"\x80%b%b" % (size.to_bytes(4, "little"), packed)


class Bits:
    """A packed stream, read bit by bit; one that was left out is all zeros."""

    __slots__ = ("_at", "_bits", "_size")

    def __init__(self, packed: bytes) -> None:
        data = unpack(packed)
        self._bits = int.from_bytes(data, "little")
        self._size = 8 * len(data)
        self._at = 0

    def take(self, count: int = 1) -> int:
        """The next bits, the first of them the highest."""
        taken = 0
        for _ in range(count):
            if self._size and self._at >= self._size:
                raise BadToken("the type bits end too early", code=TOO_FEW_BITS, position=0)
            taken = taken << 1 | (self._bits >> self._at & 1)
            self._at += 1
        return taken


def unpack(packed: bytes) -> bytes:
    """The bytes of a stream in its serialised form."""
    if not packed or packed[0] <= SHORT_BYTES:
        return packed[:1]
    start, size = 1, packed[0] & SHORT_BYTES
    if not size:
        start, size = 5, int.from_bytes(packed[1:5], "little")
    data = packed[start : start + size]
    if len(data) < size or len(packed) < start:
        raise BadToken(
            f"the type bits promise {size} bytes and have {len(data)}", code=OVERFLOW, position=0
        )
    return data
