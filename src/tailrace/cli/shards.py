"""Values on the command line that are given once for each shard, as ``name=value``.

Each reader takes the option's name, so that a refusal says which value is wrong, and
gives an ``OptionError``.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

import typer

from tailrace.cli.values import json_object
from tailrace.errors import OptionError

ShardCredentialsOption = Annotated[
    str | None,
    typer.Option(
        envvar="TAILRACE_SHARD_CREDENTIALS",
        show_envvar=True,
        help="Who reads the shards, user:password[@authSource]; the URI's user without.",
    ),
]


def credentials_of(text: str | None) -> dict[str, Any]:
    """The user of the shards, as the engine takes it; percent-encoded like a URI's."""
    if text is None:
        return {}
    login, _, source = text.partition("@")
    user, colon, password = login.partition(":")
    if not (user and colon and password):
        raise OptionError(
            "--shard-credentials is not user:password[@authSource]", option="--shard-credentials"
        )
    credentials = {"username": unquote(user), "password": unquote(password)}
    if source:
        credentials["authSource"] = unquote(source)
    return {"shard_credentials": credentials}


def named(option: str, words: list[str] | None) -> dict[str, str]:
    """The values of a repeated option by their names."""
    values: dict[str, str] = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise OptionError(f"{option} {word!r} is not name=value", option=option)
        if name in values:
            raise OptionError(f"{option} names {name} twice", option=option)
        values[name] = value
    return values


def one_or_by_shard(
    option: str, words: list[str] | None, *, by_shard: bool
) -> str | dict[str, str] | None:
    """The only value of an option, or each shard's."""
    if not words:
        return None
    if by_shard:
        return named(option, words)
    if len(words) > 1:
        raise OptionError(f"{option} more than once needs --shard", option=option)
    return words[0]


def shard_keys(option: str, words: list[str] | None) -> dict[str, dict[str, Any]]:
    """Shard keys by the collection's UUID: ``<uuid>={"region": 1}``."""
    return {
        uuid: json_object(option, pattern) or {} for uuid, pattern in named(option, words).items()
    }
