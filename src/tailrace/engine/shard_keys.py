"""Shard keys that an archive does not hold: from whoever knows the cluster's catalog.

Before 5.3 an insert's entry carries no key of its own; the server looks the shard key up
by the collection's UUID. Over an archive the caller has to say it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tailrace.errors import OptionError
from tailrace.stage.options import StreamOptions

ShardKeys = Mapping[Any, Mapping[str, object] | Iterable[str]]
"""By a collection's UUID (or its hex) its shard key: a key pattern, or its fields' names."""


def with_shard_keys(options: StreamOptions, shard_keys: ShardKeys | None) -> StreamOptions:
    """The options of a stream that knows these shard keys."""
    if not shard_keys:
        return options
    known = {_uuid(name): _paths(key) for name, key in shard_keys.items()}
    return replace(options, shape=replace(options.shape, shard_keys=known))


def _uuid(given: object) -> bytes:
    try:
        if isinstance(given, str):
            given = uuid.UUID(given)
        if isinstance(given, uuid.UUID):
            return given.bytes
        if isinstance(given, bytes):  # a Binary too
            return uuid.UUID(bytes=bytes(given)).bytes
    except ValueError:
        pass
    raise OptionError(f"shard_keys: {given!r} is not a collection's UUID", option="shard_keys")


def _paths(key: Mapping[str, object] | Iterable[str]) -> tuple[bytes, ...]:
    names = [key] if isinstance(key, str) else list(key)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise OptionError("shard_keys: a key names its fields", option="shard_keys")
    return tuple(name.encode() for name in names)
