"""The event reference as data: every event type, what makes it, and what it shows.

One row for each event and each kind of entry that makes it. The filter of a stream is
derived from these rows, the page of the reference is written from them, and a test
holds every event that is ever made against its row. ``DIFFERENCES`` lists where the
servers do otherwise than the document says; the servers are right.

Reference: change_stream_events. Checked on 4.4.2, 5.0.4, 6.0.5, 6.0.24 and 7.0.28, whose
own filters (``explain``) name the same commands and no-ops; rows of 8.0 and later, and
what patch release first had a row, are from reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tailrace.event.shape import OLDEST_VERSION, Shape, Version

END_OF_TRANSACTION = b"endOfTransaction"
NEW_SHARD = b"migrateChunkToNewShard"


class Source(Enum):
    """What kind of oplog entry makes an event."""

    WRITE = "write"
    COMMAND = "command"
    NO_OP = "no-op"
    VIEW = "write to system.views"
    MADE = "made by the stream"


class Flag(Enum):
    """What must be asked for, or be so, before an event is shown; the name of a shape's trait."""

    EXPANDED = "expanded"
    SYSTEM = "system"
    MIGRATIONS = "migrations"
    MERGE = "for_merge"
    END_OF_TRANSACTION = "end_of_transaction"


EXPANDED_SINCE: Version = (6, 0, 0)
COLLECTION, DATABASE, CLUSTER = "collection", "database", "cluster"
ALL_SCOPES = (COLLECTION, DATABASE, CLUSTER)
WIDE_SCOPES = (DATABASE, CLUSTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """One event type, from one kind of entry."""

    operation: bytes
    group: int
    """The group of the reference document."""
    source: Source
    names: tuple[bytes, ...] = ()
    """What names it in the log: ops of writes, names of commands, kinds of no-ops."""
    since: Version = OLDEST_VERSION
    needs: tuple[Flag, ...] = ()
    reads_without: tuple[Flag, ...] = ()
    """Of what it needs, that which is not the filter's to check: its entry is marked so."""
    scopes: tuple[str, ...] = ALL_SCOPES
    invalidates: tuple[str, ...] = ()
    """The scopes whose streams end behind it."""
    sharded: bool = False
    """Whether only sharded clusters have it."""
    shows: tuple[str, ...] = ("ns",)
    """The fields that it always has, besides those of ``ALWAYS``."""
    may_show: tuple[str, ...] = ()
    """The fields that options, releases or the entry decide on, besides ``COMMON``."""

    def fields(self, version: Version = EXPANDED_SINCE) -> list[str]:
        """All that it may show, in the order of a release."""
        names = {*ALWAYS, *COMMON, *self.shows, *self.may_show}
        return [name for name in field_order(version) if name in names]

    def is_read(self, shape: Shape) -> bool:
        """Whether a stream of this shape reads what makes it from the log."""
        wanted = (flag for flag in self.needs if flag not in self.reads_without)
        return shape.version >= self.since and all(getattr(shape, flag.value) for flag in wanted)


FIELDS: dict[str, str] = {
    "to": "",
    "reshardingUUID": "",
    "txnNumber": "in a transaction",
    "lsid": "in a transaction",
    "_id": "",
    "operationType": "",
    "clusterTime": "",
    "commitTimestamp": "`showCommitTimestamp`, in a prepared transaction",
    "collectionUUID": "`showExpandedEvents`",
    "wallTime": "6.0 and later",
    "fullDocument": "",
    "ns": "",
    "documentKey": "",
    "operationDescription": "`showExpandedEvents`",
    "updateDescription": "without `showRawUpdateDescription`",
    "rawUpdateDescription": "`showRawUpdateDescription`",
    "stateBeforeChange": "`showExpandedEvents`",
    "nsType": "`showExpandedEvents`, 8.0.5 and later",
    "fromMigrate": "`showMigrationEvents`, with the parameter `changeStreamsEmitFromMigrate`",
    "fullDocumentBeforeChange": "`fullDocumentBeforeChange`; before 6.0 it stands before `ns`",
    "$sortKey": "when shards are merged",
}
"""Every field of an event, in the server's order, and when it is shown."""


def field_order(version: Version) -> list[str]:
    """The fields of events in the order of a release: before 6.0 one of them stands elsewhere."""
    names = list(FIELDS)
    if version < EXPANDED_SINCE:
        names.remove("fullDocumentBeforeChange")
        names.insert(names.index("ns"), "fullDocumentBeforeChange")
    return names


ALWAYS = ("_id", "operationType", "clusterTime")
COMMON = ("wallTime", "collectionUUID", "$sortKey")
TRANSACTION = ("txnNumber", "lsid")
WRITE = (*TRANSACTION, "commitTimestamp", "fromMigrate")
IMAGED = (*WRITE, "fullDocumentBeforeChange")
DOCUMENT = ("ns", "documentKey", "fullDocument")
DESCRIBED = ("operationDescription",)
LATER_6_0: Version = (6, 0, 6)
"""Between 6.0.5, which has not, and 6.0.24, which has; the release itself was not seen."""


def _write(operation: bytes, op: bytes, shows: tuple[str, ...], *may: str) -> EventType:
    return EventType(
        operation=operation, group=1, source=Source.WRITE, names=(op,), shows=shows, may_show=may
    )


def _expanded(operation: bytes, *names: bytes, may: tuple[str, ...] = ()) -> EventType:
    return EventType(
        operation=operation,
        group=4,
        source=Source.COMMAND,
        names=names,
        since=EXPANDED_SINCE,
        needs=(Flag.EXPANDED,),
        may_show=(*DESCRIBED, *TRANSACTION, *may),
    )


def _sharding(operation: bytes, since: Version) -> EventType:
    return EventType(
        operation=operation,
        group=4,
        source=Source.NO_OP,
        names=(operation,),
        since=since,
        needs=(Flag.EXPANDED,),
        sharded=True,
        may_show=DESCRIBED,
    )


def _index_build(operation: bytes, since: Version) -> EventType:
    return EventType(
        operation=operation,
        group=6,
        source=Source.COMMAND,
        names=(operation,),
        since=since,
        needs=(Flag.EXPANDED, Flag.SYSTEM),
        may_show=DESCRIBED,
    )


def _resharding(
    operation: bytes,
    since: Version,
    *needs: Flag,
    group: int = 3,
    reads_without: tuple[Flag, ...] = (),
) -> EventType:
    return EventType(
        operation=operation,
        group=group,
        source=Source.NO_OP,
        names=(operation,),
        since=since,
        needs=needs,
        reads_without=reads_without,
        sharded=True,
        shows=("reshardingUUID",),
        may_show=("ns", *DESCRIBED),
    )


def _view(operation: bytes, op: bytes, *may: str) -> EventType:
    return EventType(
        operation=operation,
        group=4,
        source=Source.VIEW,
        names=(op,),
        since=EXPANDED_SINCE,
        needs=(Flag.EXPANDED,),
        scopes=WIDE_SCOPES,
        may_show=(*TRANSACTION, *may),
    )


REFERENCE: tuple[EventType, ...] = (
    _write(b"insert", b"i", DOCUMENT, *WRITE),
    _write(
        b"update",
        b"u",
        ("ns", "documentKey"),
        *("updateDescription", "rawUpdateDescription", "fullDocument"),
        *IMAGED,
    ),
    _write(b"replace", b"u", DOCUMENT, *IMAGED),
    _write(b"delete", b"d", ("ns", "documentKey"), *IMAGED),
    EventType(
        operation=b"drop",
        group=2,
        source=Source.COMMAND,
        names=(b"drop",),
        invalidates=(COLLECTION,),
    ),
    EventType(
        operation=b"rename",
        group=2,
        source=Source.COMMAND,
        names=(b"renameCollection", b"upgradeDowngradeViewlessTimeseries"),
        invalidates=(COLLECTION,),
        shows=("to", "ns"),
        may_show=DESCRIBED,
    ),
    EventType(
        operation=b"dropDatabase",
        group=2,
        source=Source.COMMAND,
        names=(b"dropDatabase",),
        scopes=WIDE_SCOPES,
        invalidates=(COLLECTION, DATABASE),
    ),
    EventType(
        operation=b"invalidate",
        group=2,
        source=Source.MADE,
        scopes=(COLLECTION, DATABASE),
        shows=(),
    ),
    _resharding(b"reshardBegin", (5, 0, 0), Flag.MIGRATIONS, reads_without=(Flag.MIGRATIONS,)),
    _resharding(
        b"reshardDoneCatchUp",
        (5, 0, 0),
        *(Flag.MIGRATIONS, Flag.SYSTEM),
        reads_without=(Flag.MIGRATIONS, Flag.SYSTEM),
    ),
    EventType(
        operation=NEW_SHARD,
        group=3,
        source=Source.NO_OP,
        names=(NEW_SHARD,),
        needs=(Flag.MERGE,),
        sharded=True,
        shows=(),
        may_show=("ns", *DESCRIBED),
    ),
    _expanded(b"create", b"create", may=("nsType",)),
    _expanded(b"createIndexes", b"createIndexes", b"commitIndexBuild"),
    _expanded(b"dropIndexes", b"dropIndexes"),
    _expanded(b"modify", b"collMod", may=("stateBeforeChange",)),
    _sharding(b"shardCollection", EXPANDED_SINCE),
    _sharding(b"refineCollectionShardKey", LATER_6_0),
    _sharding(b"reshardCollection", LATER_6_0),
    EventType(
        operation=END_OF_TRANSACTION,
        group=4,
        source=Source.NO_OP,
        names=(END_OF_TRANSACTION,),
        since=EXPANDED_SINCE,
        needs=(Flag.EXPANDED, Flag.END_OF_TRANSACTION),
        shows=(),
        may_show=(*TRANSACTION, *DESCRIBED),
    ),
    _view(b"create", b"i", "nsType", *DESCRIBED),
    _view(b"modify", b"u", *DESCRIBED),
    _view(b"drop", b"d"),
    _resharding(b"reshardBlockingWrites", (8, 1, 0), Flag.SYSTEM, group=5),
    _index_build(b"startIndexBuild", (6, 1, 0)),
    _index_build(b"abortIndexBuild", (7, 0, 29)),
    EventType(
        operation=b"migrateLastChunkFromShard",
        group=6,
        source=Source.NO_OP,
        names=(b"migrateLastChunkFromShard",),
        since=EXPANDED_SINCE,
        needs=(Flag.EXPANDED, Flag.SYSTEM),
        sharded=True,
        may_show=DESCRIBED,
    ),
)
"""Every row, in the order of the reference document."""

NEW_SHARD_OLD_NAME = b"kNewShardDetected"
"""What 6.0 and older call the control event of a shard's first chunk."""

CLASSIC = frozenset(row.operation for row in REFERENCE if Flag.EXPANDED not in row.needs)
"""The operation types that are shown without ``showExpandedEvents``."""


def of_source(source: Source) -> tuple[EventType, ...]:
    """The rows that one kind of entry makes."""
    return tuple(row for row in REFERENCE if row.source is source)


def names_read(source: Source, shape: Shape, scope: str) -> frozenset[bytes]:
    """The commands or no-op kinds that a stream of this shape and scope reads."""
    rows = of_source(source)
    return frozenset(
        name for row in rows if scope in row.scopes and row.is_read(shape) for name in row.names
    )


def invalidating(scope: str) -> frozenset[bytes]:
    """The operation types behind which a stream of this scope ends."""
    return frozenset(row.operation for row in REFERENCE if scope in row.invalidates)


DIFFERENCES: dict[str, str] = {
    "reshardBegin": "is not always visible: its entry is marked `fromMigrate`, so it takes "
    "`showMigrationEvents`, which only a shard itself accepts. 6.0 shows it with neither `ns` "
    "nor `operationDescription`.",
    "reshardDoneCatchUp": "takes `showMigrationEvents`, and `showSystemEvents` for its "
    "namespace; 6.0 shows none, as its pattern of system collections lacks "
    "`system.resharding.`.",
    "migrateChunkToNewShard": "is called `kNewShardDetected` up to 6.0, and has no `ns` there.",
    "refineCollectionShardKey": "and `reshardCollection` are not read by 6.0.5, whose log has no "
    "such entries; 6.0.24 reads both.",
    "reshardCollection": "is one shard's, and not made at all by 6.0.",
    "startIndexBuild": "is not shown by 6.0, also under both flags.",
    "abortIndexBuild": "is not shown by 7.0.28 and older, also under both flags.",
    "reshardBlockingWrites": "is not made by 7.0 and older: their log has `type: reshardFinalOp`.",
    "drop": "of a view is shown under `showSystemEvents` without `showExpandedEvents` as well, "
    "where that option shows `system.views` (6.0.27 and 7.0.28 do, 6.0.24 does not).",
    "system collections": "6.0 leaves out `system.resharding.`, and 6.0.24 and older "
    "`system.views`.",
    "nsType": "is shown from 8.0.5 on.",
    "fromMigrate": "is not a field up to 7.0, whatever the parameter says.",
    "showCommitTimestamp": "is unknown to 6.0 and 7.0, which answer 40415.",
    "disambiguatedPaths": "is not shown by 6.0, also under `showExpandedEvents`.",
    "endOfTransaction": "has `txnNumber` and `lsid` at its top only where its entry is one that "
    "ends a transaction.",
}
"""Where the servers do otherwise than the reference document says."""
