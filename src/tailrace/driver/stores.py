"""Where a stream's token is kept between runs, so that the next one goes on from it.

A store is whatever has ``load() -> token or None`` and ``save(token)``, plain or as
coroutines. A stream with a store loads once, when it is opened, and saves when its
consumer asks for the next batch: what was handed out before that has been dealt with.
So an event comes again when a consumer fails between the two, and none is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bson import json_util
from pymongo import WriteConcern
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.collection import Collection

from tailrace.errors import OptionError

FORMAT = 1
MAJORITY = WriteConcern("majority")

Token = Mapping[str, Any]


class FileTokenStore:
    """Keeps the token in a file of one line of JSON.

    The file is replaced as a whole, and is on disk before ``save`` returns: a crash
    leaves the old token or the new one, never half of one. ``stream`` says whose token
    it is; a file that belongs to another stream is refused.
    """

    def __init__(self, path: str | os.PathLike[str], stream: str | None = None) -> None:
        self._path = Path(path)
        self._stream = stream

    def load(self) -> dict[str, Any] | None:
        """The token that was saved last; None when there is no file yet."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._bad(f"cannot be read: {error.strerror}") from error
        try:
            state = json_util.loads(text)
            known, stream, token = state["format"], state["namespace"], state["token"]
        except (json.JSONDecodeError, TypeError, ValueError, KeyError) as error:
            raise self._bad("is not a state file") from error
        if known != FORMAT or not isinstance(token, dict):
            raise self._bad(f"is of format {known}, not {FORMAT}")
        if stream != self._stream:
            raise self._bad(f"belongs to a stream of {_said(stream)}, not of {_said(self._stream)}")
        return token

    def save(self, token: Token) -> None:
        """Put a token in the place of the one before; durable when this returns."""
        state = {"format": FORMAT, "namespace": self._stream, "token": dict(token)}
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(json_util.dumps(state) + "\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise self._bad(f"cannot be written: {error.strerror}") from error

    def _bad(self, what: str) -> OptionError:
        return OptionError(f"{self._path} {what}", option="token_store")


class MongoTokenStore:
    """Keeps the token in a document of a collection, acknowledged by a majority.

    ``key`` is the document's ``_id``: one for each stream. Not in the collection that
    is watched, or each save would be an event.
    """

    def __init__(self, collection: Collection[Any], key: Any) -> None:
        self._collection = collection.with_options(write_concern=MAJORITY)
        self._key = key

    def load(self) -> dict[str, Any] | None:
        """The token that was saved last; None when there is none."""
        found = self._collection.find_one({"_id": self._key})
        return None if found is None else dict(found["token"])

    def save(self, token: Token) -> None:
        """Put a token in the place of the one before; durable when this returns."""
        change = {"$set": {"token": token}}
        self._collection.update_one({"_id": self._key}, change, upsert=True)


class AsyncMongoTokenStore:
    """The same for a collection of an asynchronous client."""

    def __init__(self, collection: AsyncCollection[Any], key: Any) -> None:
        self._collection = collection.with_options(write_concern=MAJORITY)
        self._key = key

    async def load(self) -> dict[str, Any] | None:
        """The token that was saved last; None when there is none."""
        found = await self._collection.find_one({"_id": self._key})
        return None if found is None else dict(found["token"])

    async def save(self, token: Token) -> None:
        """Put a token in the place of the one before; durable when this returns."""
        change = {"$set": {"token": token}}
        await self._collection.update_one({"_id": self._key}, change, upsert=True)


def _said(stream: str | None) -> str:
    return "the whole deployment" if stream is None else stream
