"""A mongod that is no member of a set: it has no oplog, and refuses change streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymongo import MongoClient

from tailrace.embedded.binaries import mongod
from tailrace.embedded.folder import ServerFolder
from tailrace.embedded.mongod import MongodOptions, command, environment, patience_s
from tailrace.embedded.ports import LOOPBACK, answers, free_port
from tailrace.embedded.process import Process
from tailrace.embedded.security import Security


@contextmanager
def standalone() -> Iterator[tuple[str, MongoClient[dict[str, Any]]]]:
    """Its connection string, and a client of it."""
    build, folder, port = mongod(), ServerFolder("standalone"), free_port()
    data = folder.path / "data"
    data.mkdir()
    options = MongodOptions()
    words = command(build, options, Security(), port, data)
    at = words.index("--replSet")
    process = Process(
        words[:at] + words[at + 2 :], folder, "standalone", environment=environment(build)
    )
    uri = f"mongodb://{LOOPBACK}:{port}/"
    try:
        process.start()
        process.wait_for(lambda: answers(port), f"answer on port {port}", patience_s(build))
        with MongoClient[dict[str, Any]](uri) as client:
            yield uri, client
    finally:
        process.kill()
        folder.close()
