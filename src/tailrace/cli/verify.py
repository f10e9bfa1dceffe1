"""``tailrace verify``: whether the tables equal the source, at the tables' own cut.

One line for each table on standard output, and the keys that differ below it. The exit
status says it as well: 0 when all are equal, 1 when something differs.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tailrace.cli.lake_progress import moment
from tailrace.cli.output import EXIT_FAILED, errors_in_one_line
from tailrace.cli.surroundings import check_java, spark_part
from tailrace.cli.sync import Conf, Master, To, Uri, open_spark
from tailrace.cli.values import pairs


def verify(
    uri: Uri,
    to: To,
    hash_salt: Annotated[
        str, typer.Option(envvar="TAILRACE_HASH_SALT", help="What the tables were hashed with.")
    ] = "",
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Compare the tables with the source, document for document."""
    with errors_in_one_line():
        settings = pairs("--conf", conf)
        check_java()
        job = spark_part("verify")
        job.check_source(uri)
        session = open_spark(master, settings)
        report = job.verify(session, job.VerifyOptions(uri=uri, to=to, salt=hash_salt), _show)
        documents = sum(table.documents for table in report.tables)
        verdict = "equal" if report.equal else "DIFFERENT"
        typer.echo(
            f"{len(report.tables)} tables, {documents:,} documents: {verdict} at the cut "
            f"{moment(report.cut)}"
        )
        if not report.equal:
            raise typer.Exit(EXIT_FAILED)


def _show(table: Any) -> None:
    said = f"{table.differences:,} differ" if table.differences else "equal"
    typer.echo(f"{table.namespace:<40} {table.documents:>12,} documents  {said}")
    for key, how in table.keys:
        typer.echo(f"    {how:<12} {key}")
    if table.differences > len(table.keys):
        typer.echo(f"    and {table.differences - len(table.keys):,} more")
