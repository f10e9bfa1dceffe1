"""``tailrace replay``: the events of an oplog archive, as JSON lines or BSON.

Exit status: 0 at the end of the archive or after an invalidate, 2 for bad usage, 3
for an error that the server would raise, 4 for a broken archive.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.output import (
    Format,
    FormatOption,
    NamespaceOption,
    RelaxedOption,
    errors_in_one_line,
    event_writer,
)
from tailrace.cli.values import cluster_time, json_array, json_object, token_document
from tailrace.engine import replay as replay_archive


def replay(
    file: Annotated[
        str, typer.Argument(help="Concatenated BSON entries, plain, .gz or .zst; - is stdin.")
    ],
    namespace: NamespaceOption = None,
    options: Annotated[str | None, typer.Option(help="$changeStream options, JSON.")] = None,
    pipeline: Annotated[str | None, typer.Option(help="Stages to append, a JSON array.")] = None,
    documents: Annotated[str | None, typer.Option(help="BSON file for updateLookup.")] = None,
    pre_images: Annotated[str | None, typer.Option(help="BSON file of pre-images.")] = None,
    server_version: Annotated[str, typer.Option(help="Whose events: 6.0 or 6.0.5.")] = "6.0",
    server_parameters: Annotated[
        str | None, typer.Option(help="Server parameters that change events, JSON.")
    ] = None,
    start_at_operation_time: Annotated[
        str | None, typer.Option(help="Timestamp(t, i), or an ISO time.")
    ] = None,
    resume_after: Annotated[str | None, typer.Option(help="A token, hex or JSON.")] = None,
    start_after: Annotated[str | None, typer.Option(help="A token, hex or JSON.")] = None,
    form: FormatOption = Format.JSONL,
    relaxed: RelaxedOption = False,
) -> None:
    """Print the change events of an oplog archive."""
    with errors_in_one_line():
        events = replay_archive(
            file,
            namespace=namespace,
            options=json_object("--options", options),
            pipeline=json_array("--pipeline", pipeline),
            documents=documents,
            pre_images=pre_images,
            server_version=server_version,
            server_parameters=json_object("--server-parameters", server_parameters),
            start_at_operation_time=cluster_time(
                "--start-at-operation-time", start_at_operation_time
            ),
            resume_after=token_document("--resume-after", resume_after),
            start_after=token_document("--start-after", start_after),
        )
        write = event_writer(form, relaxed=relaxed)
        for event in events:
            write(bytes(event.raw))
