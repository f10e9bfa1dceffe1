"""``tailrace explain``: which stages of a pipeline run here, and which on the source server.

A stage that only a server can run takes all behind it along. Exit status 3 when a server
of that release would refuse the pipeline.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tailrace.cli.output import errors_in_one_line
from tailrace.cli.values import json_array, json_object
from tailrace.engine import explain_pipeline


def explain(
    pipeline: Annotated[str, typer.Argument(help="Stages to append, a JSON array.")],
    server_version: Annotated[str, typer.Option(help="Whose stages: 6.0 or 6.0.5.")] = "6.0",
    let: Annotated[str | None, typer.Option(help="Variables for the stages, JSON.")] = None,
) -> None:
    """Say where each stage of a pipeline would run, as JSON lines."""
    with errors_in_one_line():
        for stage in explain_pipeline(
            json_array("PIPELINE", pipeline) or [],
            server_version=server_version,
            let=json_object("--let", let),
        ):
            typer.echo(json.dumps(stage))
