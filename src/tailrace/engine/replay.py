"""Change streams from oplog archives: the front door of the pure pipeline.

No server is asked: what a stage wants to look up comes from the files of a recording
(or is not there). Options are checked when ``replay`` is called; what goes wrong
later is raised after the events before it.

Above every room but the command line; it only joins the reader to the stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp

from tailrace.engine.recorded import RecordedLookups
from tailrace.engine.recorded_shards import files_of, merged_events
from tailrace.engine.shard_keys import ShardKeys, with_shard_keys
from tailrace.engine.user_stages import UserStages
from tailrace.errors import BadBson, OptionError
from tailrace.event.shape import parse_version
from tailrace.oplog.archive import Archive, Source
from tailrace.stage.options import Caller, Starts, parse_options
from tailrace.stage.shard import ShardStream
from tailrace.stage.user import with_pipeline


def replay(
    archive: Source | Mapping[str, Source],
    *,
    namespace: str | None = None,
    options: Mapping[str, Any] | None = None,
    pipeline: Sequence[Mapping[str, Any]] | None = None,
    let: Mapping[str, Any] | None = None,
    collation: Mapping[str, Any] | None = None,
    documents: Source | Mapping[str, Source] | None = None,
    pre_images: Source | Mapping[str, Source] | None = None,
    shard_keys: ShardKeys | None = None,
    server_version: str = "6.0",
    server_parameters: Mapping[str, Any] | None = None,
    start_at_operation_time: Timestamp | None = None,
    resume_after: Mapping[str, Any] | None = None,
    start_after: Mapping[str, Any] | None = None,
) -> Iterator[RawBSONDocument]:
    """The events that a server of this version makes of an archive's entries, in order.

    Of a sharded cluster, ``archive`` has each shard's by its name: then the stream of all
    of them comes as a mongos merges it, and ``documents`` and ``pre_images`` are by shard too.
    Inserts of servers before 5.3 do not say their shard key: ``shard_keys`` does, by the
    collection's UUID, as ``{"region": 1, "user": 1}`` or its fields' names.

    Raises ``ServerError`` where the server ends the stream with an error, and
    ``BadArchive`` where the archive breaks; both after the events before it.
    """
    version = parse_version(server_version)
    parsed = parse_options(
        options,
        namespace,
        version,
        starts=Starts(start_at_operation_time, resume_after, start_after),
        parameters=server_parameters,
        caller=Caller(mongos=isinstance(archive, Mapping)),
    )
    parsed = with_shard_keys(parsed, shard_keys)
    stages = UserStages(pipeline, let, collation).compiled(version)
    parsed = with_pipeline(parsed, stages)
    if isinstance(archive, Mapping):
        return merged_events(files_of(archive, documents, pre_images), parsed, stages)
    if isinstance(documents, Mapping) or isinstance(pre_images, Mapping):
        raise OptionError("documents by shard need archives by shard", option="documents")
    lookups = RecordedLookups(parsed.shape, documents=documents, pre_images=pre_images)
    stream = ShardStream(parsed, lookups, stages)
    return _events(Archive(archive), stream, lookups)


def _events(
    archive: Archive, stream: ShardStream, lookups: RecordedLookups
) -> Iterator[RawBSONDocument]:
    with closing(lookups):
        entries = _checked(iter(archive), stream)
        try:
            for event in stream.run(entries):
                yield RawBSONDocument(event.raw)
        except BadBson as error:
            raise archive.bad_entry(error) from error


def _checked(entries: Iterator[bytes], stream: ShardStream) -> Iterator[bytes]:
    """The entries; with a start, the first of them must lie at or before it."""
    first = next(entries, None)
    if first is None:
        return
    if stream.options.start:
        stream.open(first)
    yield first
    yield from entries
