"""Type bits: what a KeyString leaves out of its bytes because it does not sort.

``1``, ``1L`` and ``1.0`` have the same key bytes; one stream of bits, filled in the
order of the values, tells them apart. While a key is built the stream is a
``bytearray`` of ``0`` and ``1`` characters; packed, bit *i* lies in byte *i/8* at
place *i%8*, and a stream without a single 1 is left out altogether.

Spec: facts/server-semantics, 1.5.
"""

from __future__ import annotations

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
