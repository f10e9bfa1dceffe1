"""Runs PyMongo's own tests of change streams on our stream, as a process of its own.

    python tests/support/pymongo_suite.py FOLDER test.test_change_stream RESULT

FOLDER holds PyMongo's ``test`` package; ``DB_IP`` and ``DB_PORT`` name the server. The
tests are PyMongo's, unchanged. What they look at inside a stream is put before them
here, made of our stream's public facts; ``plain`` as a fourth word leaves PyMongo's own
stream in place, for comparison.
"""

from __future__ import annotations

import importlib
import json
import sys
import unittest
import warnings
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient, MongoClient
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.command_cursor import AsyncCommandCursor
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.collection import Collection
from pymongo.command_cursor import CommandCursor
from pymongo.database import Database

import tailrace

OPENED: list[str] = []
"""The kind of every stream of ours that was opened."""


class CursorFacts:
    """A stream's public facts under the names that a PyMongo cursor has for them."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __del__(self) -> None: ...

    @property
    def address(self) -> Any:
        return self._stream.address

    @property
    def cursor_id(self) -> int:
        return self._stream.cursor_id

    @property
    def _ns(self) -> str:
        return self._stream.namespace

    @property
    def _max_await_time_ms(self) -> int | None:
        return self._stream.max_await_time_ms

    def _has_next(self) -> bool:
        return self._stream.buffered > 0


class Cursor(CursorFacts, CommandCursor):
    """A cursor of a synchronous stream."""


class AsyncCursor(CursorFacts, AsyncCommandCursor):
    """A cursor of an asynchronous stream."""


def put_before(stream: type, cursor: type) -> None:
    """Give our stream the private names that the tests look at."""
    names = {
        "_target": lambda self: self.target,
        "_client": lambda self: getattr(self.target, "client", None) or self.target.database.client,
        "_pipeline": lambda self: self.pipeline,
        "_full_document": lambda self: self.options.get("full_document"),
        "_batch_size": lambda self: self.options.get("batch_size"),
        "_max_await_time_ms": lambda self: self.max_await_time_ms,
        "_cursor": cursor,
    }
    for name, of in names.items():
        setattr(stream, name, property(of))


def plug_in() -> None:
    """Have every ``watch`` of PyMongo be ours."""

    def watch(self: Any, *words: Any, **options: Any) -> Any:
        stream = tailrace.watch(self, *words, **options)
        OPENED.append(type(stream).__name__)
        return stream

    async def watch_async(self: Any, *words: Any, **options: Any) -> Any:
        return await watch(self, *words, **options)

    for kind in (MongoClient, Database, Collection):
        kind.watch = watch
    for kind in (AsyncMongoClient, AsyncDatabase, AsyncCollection):
        kind.watch = watch_async
    put_before(tailrace.ChangeStream, Cursor)
    put_before(tailrace.AsyncChangeStream, AsyncCursor)
    importlib.import_module("test.unified_format").ChangeStream = tailrace.ChangeStream
    asynchronous = importlib.import_module("test.asynchronous.unified_format")
    asynchronous.AsyncChangeStream = tailrace.AsyncChangeStream


def set_up(module: str) -> None:
    """What PyMongo's pytest fixtures do before the first test."""
    if ".asynchronous." in module:
        package = importlib.import_module("test.asynchronous")
        package.get_loop().run_until_complete(package.async_setup())
    else:
        importlib.import_module("test").setup()
    warnings.simplefilter("ignore", ResourceWarning)


def main(folder: str, module: str, result: str, *words: str) -> int:
    """Run the tests of one module; what came of them is written as JSON."""
    sys.path.insert(0, folder)
    if "plain" not in words:
        plug_in()
    set_up(module)
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    run = unittest.TextTestRunner(verbosity=2).run(suite)
    outcome = {
        "opened": len(OPENED),
        "run": run.testsRun,
        "skipped": {test.id(): reason for test, reason in run.skipped},
        "failed": {test.id(): said for test, said in (*run.failures, *run.errors)},
    }
    Path(result).write_text(json.dumps(outcome))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
