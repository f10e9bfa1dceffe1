"""Change streams from the oplog archives of a sharded cluster, one for each shard.

Every archive runs through a shard's stages by itself; the router merges what they give,
as a mongos does. Whichever shard holds the others back is read next, some entries at a
time, so that memory is bounded whatever the archives look like. What goes wrong with
one shard is raised when everything before it is out, and ends the stream.

An update's document is looked up on all shards: it may have moved since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, islice

from bson.raw_bson import RawBSONDocument

from tailrace.engine.recorded import RecordedLookups
from tailrace.errors import BadBson, OptionError, TailraceError
from tailrace.event.event import Event
from tailrace.oplog.archive import Archive, Source
from tailrace.oplog.entry import Entry
from tailrace.raw import spans, text_of
from tailrace.raw.elements import STRING
from tailrace.router import Merge
from tailrace.stage.merged import MergedStream
from tailrace.stage.options import StreamOptions
from tailrace.stage.shard import ShardStream
from tailrace.stage.user import Pipeline

ENTRIES_AT_ONCE = 500
IDENTITY = b"shardIdentity"
IDENTITY_NAMESPACE = b"admin.system.version"


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """What was kept of one shard."""

    archive: Source
    documents: Source | None = None
    pre_images: Source | None = None


def files_of(
    archives: Mapping[str, Source],
    documents: object = None,
    pre_images: object = None,
) -> dict[str, ShardFiles]:
    """Each shard's files; those beside the archives must be by shard as well."""
    if not archives:
        raise OptionError("an archive for one shard at least is needed", option="archive")
    beside = {"documents": documents, "pre_images": pre_images}
    for option, given in beside.items():
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise OptionError(f"{option} must be by shard, as the archives are", option=option)
        for name in given:
            if name not in archives:
                known = ", ".join(archives)
                raise OptionError(
                    f"{option} names a shard {name}; the archives are of {known}", option=option
                )
    return {
        name: ShardFiles(
            archive,
            *(given.get(name) if isinstance(given, Mapping) else None for given in beside.values()),
        )
        for name, archive in archives.items()
    }


def merged_events(
    files: Mapping[str, ShardFiles], options: StreamOptions, pipeline: Pipeline | None = None
) -> Iterator[RawBSONDocument]:
    """The events of all shards, in token order."""
    with ExitStack() as stack:
        everywhere = [
            stack.enter_context(
                closing(
                    RecordedLookups(
                        options.shape, documents=each.documents, pre_images=each.pre_images
                    )
                )
            )
            for each in files.values()
        ]
        shards = {
            name: _Shard(name, each, options, _ShardLookups(own, everywhere))
            for (name, each), own in zip(files.items(), everywhere, strict=True)
        }
        whole = MergedStream(options, pipeline)
        for event in _merged(shards, whole, options):
            yield RawBSONDocument(event.raw)


def _merged(
    shards: Mapping[str, _Shard], whole: MergedStream, options: StreamOptions
) -> Iterator[Event]:
    for shard in shards.values():
        shard.open()
    merge: Merge[Event] = Merge(ShardStream(options).position)
    for name, shard in shards.items():
        merge.add(name, shard.stream.position)
    while merge.awaited is not None and not whole.ended:
        shard = shards[merge.awaited]
        events = shard.read()
        merge.feed(shard.name, events, shard.stream.promise)
        if not events and shard.over:
            merge.end(shard.name)
        yield from whole.run(event for _, event in merge.ready())


class _Shard:
    """One shard's archive and its stages."""

    def __init__(
        self, name: str, files: ShardFiles, options: StreamOptions, lookups: _ShardLookups
    ) -> None:
        self.name = name
        self.over = False
        """Whether nothing more will come."""
        self.stream = ShardStream(options, lookups)
        self._archive = Archive(files.archive)
        self._entries: Iterator[bytes] = iter(self._archive)
        self._error: TailraceError | None = None

    def open(self) -> None:
        """Check that the archive reaches back to the start, or to when the shard joined."""
        first = next(self._entries, None)
        if first is None:
            return
        if self.stream.options.start and not _joins(first):
            self.stream.open(first)
        self._entries = chain((first,), self._entries)

    def read(self) -> list[Event]:
        """The events of the next entries; an error waits until they are out."""
        if self._error is not None:
            raise self._error
        events: list[Event] = []
        try:
            for event in self.stream.run(self._some()):
                events.append(event)
            self.over |= self.stream.ended
        except BadBson as error:
            self._error = self._archive.bad_entry(error)
        except TailraceError as error:
            self._error = error
        return events

    def _some(self) -> Iterator[bytes]:
        self.over = True
        for entry in islice(self._entries, ENTRIES_AT_ONCE):
            self.over = False
            yield entry


class _ShardLookups:
    """A shard's own files, and everybody's documents."""

    def __init__(self, own: RecordedLookups, everywhere: list[RecordedLookups]) -> None:
        self._places = [own, *(other for other in everywhere if other is not own)]
        self.remember = own.remember
        self.forget = own.forget
        self.entry = own.entry
        self.pre_image = own.pre_image

    def document(self, namespace: bytes, uuid: bytes, key: bytes, time: int) -> bytes | None:
        """The document on whichever shard has it."""
        found = (place.document(namespace, uuid, key, time) for place in self._places)
        return next((document for document in found if document is not None), None)


def _joins(first: bytes) -> bool:
    """Whether a shard's log begins with the entry that makes it one."""
    entry = Entry(first)
    if entry.op != b"i" or entry.namespace != IDENTITY_NAMESPACE or entry.o is None:
        return False
    span = spans(entry.o).get(b"_id")
    return span is not None and span[0] == STRING and text_of(entry.o, span) == IDENTITY
