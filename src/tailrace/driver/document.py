"""Events and tokens as they came: bytes that are decoded when somebody looks.

``RawDocument`` is PyMongo's raw document that also equals any mapping of the same
content, so that a token out of a reply can be compared with one that was decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

ID_ELEMENT = slice(4, 9)
"""Where an event's first element has its type and its name."""
ID_FIRST = b"\x03_id\x00"


class RawDocument(RawBSONDocument):
    """A document as the bytes that came; equal to every mapping that says the same."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RawBSONDocument):
            return bool(self.raw == other.raw)
        if isinstance(other, Mapping):
            return bool(bson.decode(self.raw) == other)
        return NotImplemented

    __hash__ = None


RAW: CodecOptions[Any] = CodecOptions(document_class=RawDocument)


def raw_document(raw: bytes) -> RawDocument:
    """A document of bytes that are known to be one."""
    return RawDocument(raw, RAW)


def has_token(event: RawBSONDocument) -> bool:
    """Whether an event has its ``_id``; nearly always seen without decoding it."""
    return event.raw[ID_ELEMENT] == ID_FIRST or "_id" in event


def decoder(options: CodecOptions[Any]) -> Callable[[RawBSONDocument], Any]:
    """What makes of a document one as the caller's codec options have them."""
    made = options.document_class
    if issubclass(made, RawBSONDocument):
        return lambda document: made(document.raw, options)
    return lambda document: bson.decode(document.raw, options)
