"""A target: where its parts lie, what it was made with, and who may write to it.

    <to>/changes              every event, append only
    <to>/current/<table>      one row per document
    <to>/control              which version of which table shows which cut
    <to>/checkpoint           Spark's notes for the query; can be made anew

One query at a time writes to a target. On a local path a lock says so, which the JVM
holds, for it is what commits: it is gone when that is. Elsewhere the commits of two
queries collide in the table's log, and the second one ends.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tailrace.errors import CheckpointError, OperatorError, OptionError

CHECKPOINT = "checkpoint"
LOCK = ".tailrace.lock"
LOCK_PATIENCE_S = 20.0
"""A query that was killed a moment ago is gone when its JVM is."""
LOCK_POLL_S = 0.25
SAID_AS = {
    "namespaces": "--namespaces",
    "excludeNamespaces": "--exclude-namespaces",
    "tables": "--no-load",
    "softDeletes": "--soft-deletes",
    "dropFields": "--drop-fields",
    "hashFields": "--hash-fields",
}


def root_of(to: str) -> str:
    """The target as Spark names it: a URL, or a local path from the root on."""
    if not to.strip():
        raise OptionError("--to is empty", option="--to")
    return to.rstrip("/") if ":" in to.partition("/")[0] else str(Path(to).absolute())


def check_made_with(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """An error, when a target was made of something else, or otherwise."""
    if kept.get("source") != asked.get("source"):
        raise CheckpointError(
            f"this target belongs to another source: it was made from the replica set "
            f"{kept.get('set')!r} ({kept.get('source')}), and this is {asked.get('set')!r} "
            f"({asked.get('source')}); take another --to",
        )
    for name, option in SAID_AS.items():
        if kept.get(name) != asked.get(name):
            raise OptionError(
                f"{option}: this target was made with {kept.get(name)!r}, not {asked.get(name)!r}; "
                "take another --to, or say the same",
                option=option,
            )


@contextlib.contextmanager
def held(spark: SparkSession, root: str) -> Iterator[None]:
    """Have the target to oneself; an error, if another query has it."""
    local = root.removeprefix("file:") if root.startswith(("/", "file:")) else None
    if local is None:
        yield
        return
    Path(local).mkdir(parents=True, exist_ok=True)
    java: Any = spark._jvm
    file = java.java.io.RandomAccessFile(f"{local}/{LOCK}", "rw")
    lock = _locked(file.getChannel())
    if lock is None:
        file.close()
        raise OperatorError(f"the target {root} is in use by another query")
    try:
        yield
    finally:
        lock.release()
        file.close()


def _locked(channel: Any) -> Any:
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            if (lock := channel.tryLock()) is not None:
                return lock
        except Py4JJavaError as error:
            if "OverlappingFileLock" not in str(error):
                raise
        if time.monotonic() > deadline:
            return None
        time.sleep(LOCK_POLL_S)
