"""``tailrace sync``: lake tables that equal a deployment, kept so by Spark.

Progress goes to standard error: bars and a status line on a terminal, now and then a
line in a log. Ctrl-C and SIGTERM end it when the batch that runs is in, with status 0;
the next run goes on where it stopped, however it was stopped.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

import typer

from tailrace.cli.lake_progress import LakeProgress
from tailrace.cli.output import errors_in_one_line
from tailrace.cli.signals import until_signalled
from tailrace.cli.surroundings import check_java, spark_part, submitted
from tailrace.cli.values import pairs
from tailrace.errors import OptionError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?\Z")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, None: 1}

Uri = Annotated[str, typer.Argument(metavar="SOURCE_URI", help="The deployment to read.")]
To = Annotated[str, typer.Option(help="The target: a folder, or any URL that Hadoop writes to.")]
Master = Annotated[str | None, typer.Option(help="Spark's master; local[*] without.")]
Conf = Annotated[list[str] | None, typer.Option(help="A setting of Spark, name=value; repeatable.")]


def sync(
    uri: Uri,
    to: To,
    namespaces: Annotated[
        str | None, typer.Option(help="Only these, such as 'shop.*,crm.people'.")
    ] = None,
    exclude_namespaces: Annotated[str | None, typer.Option(help="But not these.")] = None,
    once: Annotated[bool, typer.Option("--once", help="End when all is in that is there.")] = False,
    interval: Annotated[str, typer.Option(help="How often a batch starts, at most.")] = "5s",
    no_load: Annotated[
        bool, typer.Option("--no-load", help="Only `changes`, from now on; no tables.")
    ] = False,
    soft_deletes: Annotated[
        bool, typer.Option("--soft-deletes", help="Keep rows of deleted documents, marked.")
    ] = False,
    drop_fields: Annotated[str | None, typer.Option(help="Paths that never leave here.")] = None,
    hash_fields: Annotated[str | None, typer.Option(help="Paths that leave as hashes.")] = None,
    hash_salt: Annotated[
        str, typer.Option(envvar="TAILRACE_HASH_SALT", help="Goes into every hash.")
    ] = "",
    maintain: Annotated[
        str | None, typer.Option(help="Compact and clean the tables this often, such as 1h.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the source, name=value; repeatable.")
    ] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Keep lake tables equal to a replica set: load them once, then follow its log."""
    with errors_in_one_line():
        every = seconds("--interval", interval)
        upkeep = None if maintain is None else seconds("--maintain", maintain)
        settings = pairs("--conf", conf)
        check_java()
        job = spark_part("sync")
        fields = spark_part("fields")
        options = job.SyncOptions(
            uri=uri,
            to=to,
            namespaces=listed(namespaces),
            exclude_namespaces=listed(exclude_namespaces),
            once=once,
            interval=f"{max(1, round(every * 1000))} milliseconds",
            load=not no_load,
            soft_deletes=soft_deletes,
            fields=fields.FieldRules(listed(drop_fields), listed(hash_fields), hash_salt),
            maintain_every_s=upkeep,
            source=pairs("--option", option),
        )
        job.check_source(options)
        stopping = until_signalled()
        session = open_spark(master, settings)
        until_signalled(stopping)  # Spark takes SIGINT for itself
        with LakeProgress(to) as progress:
            job.Sync(session, options, progress).run(stopping)


def open_spark(master: str | None, settings: dict[str, str]) -> Any:
    """The session that a job runs in."""
    session = spark_part("session")
    wanted = master or (None if submitted() else session.LOCAL)
    return session.open_session(wanted, settings)


def listed(text: str | None) -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(part for each in (text or "").split(",") if (part := each.strip()))


def seconds(name: str, text: str) -> float:
    """A length of time: 5, 500ms, 5s, 1m, 1h, 2d."""
    found = _DURATION.match(text.strip())
    if found is None:
        raise OptionError(f"{name}: {text!r} is no length of time, like 5s, 10m or 1h", option=name)
    return timedelta(seconds=float(found[1]) * _UNITS[found[2]]).total_seconds()
