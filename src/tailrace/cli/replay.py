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
from tailrace.cli.shards import named, one_or_by_shard, shard_keys
from tailrace.cli.values import cluster_time, json_array, json_object, token_document
from tailrace.engine import replay as replay_archive
from tailrace.errors import OptionError

Shards = Annotated[
    list[str] | None,
    typer.Option(help="A shard's archive, name=FILE; one for each, instead of FILE."),
]
Documents = Annotated[
    list[str] | None,
    typer.Option(help="BSON file for updateLookup; with --shard name=FILE, repeatable."),
]
PreImages = Annotated[
    list[str] | None,
    typer.Option(help="BSON file of pre-images; with --shard name=FILE, repeatable."),
]
ShardKeys = Annotated[
    list[str] | None,
    typer.Option(help="Before 5.3, a collection's shard key: its UUID={...}; repeatable."),
]


def replay(
    file: Annotated[
        str | None,
        typer.Argument(help="Concatenated BSON entries, plain, .gz or .zst; - is stdin."),
    ] = None,
    shard: Shards = None,
    namespace: NamespaceOption = None,
    options: Annotated[str | None, typer.Option(help="$changeStream options, JSON.")] = None,
    pipeline: Annotated[str | None, typer.Option(help="Stages to append, a JSON array.")] = None,
    let: Annotated[str | None, typer.Option(help="Variables for the stages, JSON.")] = None,
    documents: Documents = None,
    pre_images: PreImages = None,
    shard_key: ShardKeys = None,
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
    """Print the change events of an oplog archive, or of a cluster's, merged."""
    with errors_in_one_line():
        shards = named("--shard", shard)
        if bool(shards) == bool(file):
            raise OptionError("one file is needed, or --shard name=FILE for each", option="file")
        by_shard = bool(shards)
        events = replay_archive(
            shards or file or "",
            namespace=namespace,
            options=json_object("--options", options),
            pipeline=json_array("--pipeline", pipeline),
            let=json_object("--let", let),
            documents=one_or_by_shard("--documents", documents, by_shard=by_shard),
            pre_images=one_or_by_shard("--pre-images", pre_images, by_shard=by_shard),
            shard_keys=shard_keys("--shard-key", shard_key),
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
