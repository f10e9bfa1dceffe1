"""``tailrace maintain``: small files joined, old versions deleted, while no sync runs."""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.output import errors_in_one_line
from tailrace.cli.surroundings import check_java, spark_part
from tailrace.cli.sync import Conf, Master, To, open_spark, seconds
from tailrace.cli.values import pairs


def maintain(
    to: To,
    keep: Annotated[
        str, typer.Option(help="How long every version that `control` names stays readable.")
    ] = "7d",
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Compact the tables of a target, and delete what no reader may ask for any more."""
    with errors_in_one_line():
        keep_hours = seconds("--keep", keep) / 3600
        settings = pairs("--conf", conf)
        check_java()
        job = spark_part("maintain")
        named = job.maintain_target(open_spark(master, settings), to, keep_hours)
        typer.echo(f"{len(named)} tables compacted: {', '.join(sorted(named)) or 'none needed it'}")
