"""Folder names for tables, from any namespace that MongoDB allows.

A name keeps what every file system and object store takes as it is; every other byte
becomes ``~`` and two hex digits. Names differ also where case does not count, and a
namespace whose first choice is taken gets a number: the mapping is written down in
``control``, nobody has to compute it backwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_NOT_FIRST = b"_."
"""Hadoop takes such a folder for a hidden one."""
MOST_BYTES = 200
"""File systems stop at 255; a number may have to be added."""


def table_name(namespace: str, taken: Collection[str]) -> str:
    """A name for the namespace's table that is unlike those taken, whatever their case."""
    wished = _shortened(_escaped(namespace), namespace)
    folded = {name.casefold() for name in taken}
    name, number = wished, 1
    while name.casefold() in folded:
        number += 1
        name = f"{wished}~~{number}"
    return name


def _escaped(namespace: str) -> str:
    raw = namespace.encode("utf-8", "surrogatepass")
    return "".join(
        chr(byte) if byte in _SAFE and not (at == 0 and byte in _NOT_FIRST) else f"~{byte:02x}"
        for at, byte in enumerate(raw)
    )


def _shortened(name: str, namespace: str) -> str:
    if len(name) <= MOST_BYTES:
        return name
    digest = hashlib.sha256(namespace.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{name[: MOST_BYTES - 20]}~~~{digest}"
