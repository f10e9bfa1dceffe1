"""``tailrace doctor``: whether a sync would work, on one screen.

The source, its privileges and its log; Java, Spark and its jars; and with ``--to`` the
target: what it was made of and how far it is. Exit status 1 says that something is wrong.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tailrace.cli.output import EXIT_FAILED, errors_in_one_line
from tailrace.cli.surroundings import OLDEST_JAVA, java_version, spark_part
from tailrace.cli.sync import Conf, Master, Uri, open_spark
from tailrace.cli.values import pairs
from tailrace.engine.checkup import Finding, examine
from tailrace.errors import OptionError, TailraceError

MARKS = {True: "ok  ", False: "BAD ", None: "note"}
PATIENCE_MS = 10_000
"""How long a source that does not answer is waited for."""


def doctor(
    uri: Uri,
    to: Annotated[str | None, typer.Option(help="Look at this target as well.")] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Look at source, machine and target, and say what is missing."""
    with errors_in_one_line():
        bad = 0
        for finding in _everything(uri, to, master, pairs("--conf", conf)):
            typer.echo(f"{MARKS[finding.good]}  {finding.name:<12} {finding.said}")
            bad += finding.good is False
        if bad:
            raise typer.Exit(EXIT_FAILED)


def _everything(
    uri: str, to: str | None, master: str | None, settings: dict[str, str]
) -> Iterator[Finding]:
    yield Finding(
        "tailrace",
        True,
        f"{importlib.metadata.version('tailrace')} on Python {platform.python_version()}",
    )
    try:
        client: MongoClient[dict[str, object]] = MongoClient(
            uri, appname="tailrace", serverSelectionTimeoutMS=PATIENCE_MS
        )
    except (PyMongoError, ValueError) as error:
        raise OptionError(
            f"SOURCE_URI is no connection string: {type(error).__name__}", option="SOURCE_URI"
        ) from None
    with client:
        yield from examine(client)
    ready = True
    for finding in _machine():
        ready = ready and finding.good is not False
        yield finding
    if to is not None and ready:
        try:
            target = spark_part("target_report")
            yield from (
                Finding(*each) for each in target.describe(open_spark(master, settings), to)
            )
        except TailraceError as error:
            yield Finding("target", False, str(error))


def _machine() -> Iterator[Finding]:
    version = java_version()
    if version is None:
        yield Finding("java", False, f"there is none: install Java {OLDEST_JAVA}, or set JAVA_HOME")
    elif version < OLDEST_JAVA:
        yield Finding("java", False, f"{version}; Spark needs {OLDEST_JAVA} or newer")
    else:
        yield Finding("java", True, str(version))
    try:
        spark_part("session")
    except TailraceError as error:
        yield Finding("spark", False, str(error))
        return
    found = [f"{name} {importlib.metadata.version(name)}" for name in ("pyspark", "delta-spark")]
    yield Finding("spark", True, ", ".join(found))
    jars = sorted(Path.home().glob(".ivy2*/jars/io.delta_delta-spark*.jar"))
    if jars:
        yield Finding("jars", True, jars[-1].name)
    else:
        yield Finding("jars", None, "not here yet: the first start fetches 90 MB")
