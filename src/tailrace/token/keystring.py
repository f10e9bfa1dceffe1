"""One BSON value as a KeyString and back; what the vectors and the curious use.

Tokens are several values in one key: they have their own ways (``layout``, ``mould``
and ``resume_token``) over the same encoder and decoder.

Spec: facts/server-semantics, section 1.
"""

from __future__ import annotations

from tailrace.errors import BadToken
from tailrace.token.ctypes import END
from tailrace.token.decoder import Value, decode
from tailrace.token.encoder import Encoder
from tailrace.token.typebits import pack

NOT_ONE_VALUE = 40646


def encode_value(kind: int, raw: bytes) -> tuple[bytes, bytes]:
    """The key bytes of a value, its end byte included, and its type bits."""
    key = Encoder()
    key.value(kind, raw)
    key.out.append(END)
    return bytes(key.out), pack(key.bits)


def decode_value(key: bytes, type_bits: bytes = b"") -> Value:
    """The one value in a key."""
    values = decode(key, type_bits)
    if len(values) != 1:
        raise BadToken(f"{len(values)} values instead of one", code=NOT_ONE_VALUE, position=0)
    return values[0][1]
