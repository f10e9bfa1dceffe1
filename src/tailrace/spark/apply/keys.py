"""The key by which rows of ``current`` are found: where a document stands in its index.

The KeyString of the document key: the same for 1 and 1.0, as in MongoDB's own index,
since a replacement may change the one into the other. Every token of a write ends with
it, so that Spark cuts it out without Python; a loaded row's is encoded.
"""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)

from tailrace.token.encoder import Encoder

_INDEX = "(?:29|2B.{2}|2C.{4}|2D.{6}|2E.{8}|2F.{10})"
_BEHIND_TIME = f"2C0100{_INDEX}6E5A1004.{{32}}46"
_WRITES = "|".join(
    name.encode().hex().upper() for name in ("insert", "update", "replace", "delete")
)
_NAMED = f"3C{b'operationType'.hex()}003C(?:{_WRITES})0046{b'documentKey'.hex()}0046".upper()
TOKEN_PATTERN = f"^82.{{16}}2B(?:02{_BEHIND_TIME}(.*)04|04{_BEHIND_TIME}{_NAMED}(.*)0004)$"
"""The key is the first group of a version 1 token, the second of a version 2 token."""
_token = re.compile(TOKEN_PATTERN)


def key_in_token(token: Column) -> Column:
    """The key in a write's token; empty where it is no such token."""
    groups = (F.regexp_extract(token, TOKEN_PATTERN, group) for group in (1, 2))
    return F.concat(*groups)


def key_in_text(token: str) -> str:
    """The same for one token."""
    found = _token.match(token)
    return "".join(group or "" for group in found.groups()) if found else ""


def key_of(document_key: bytes) -> str:
    """The key of a document key in raw BSON."""
    encoder = Encoder()
    encoder.body(document_key)
    return bytes(encoder.out).hex().upper()
