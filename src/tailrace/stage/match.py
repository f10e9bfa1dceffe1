"""The first stage: which oplog entries can become events of this stream at all.

Entries come as raw bytes, in the order of the log; what passes is an ``Entry``. The
verdict on a plain write depends on its namespace alone and is remembered. The stage
also keeps the time of the last entry it saw, passed or not: that is how far the
stream has read.

Rules: facts/server-semantics, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tailrace.event.noops import kind_of
from tailrace.event.reference import END_OF_TRANSACTION, Source, names_read
from tailrace.oplog.entry import WRITES, Entry
from tailrace.raw import iter_spans, text_of
from tailrace.raw.elements import ARRAY, STRING
from tailrace.stage.lookups import Lookups
from tailrace.stage.options import OFF, StreamOptions
from tailrace.stage.scope import Patterns

MAX_VERDICTS = 50_000
"""Past this many namespaces the remembered verdicts start anew."""

TRANSACTION_ENDS = frozenset((b"applyOps", b"commitTransaction"))
SHOWN_THOUGH_MIGRATED = frozenset((b"create", b"createIndexes"))


class OplogMatch:
    """Lets through what a stream of these options looks at."""

    def __init__(self, options: StreamOptions, lookups: Lookups) -> None:
        shape = options.shape
        self.scanned = 0
        """The time of the last entry that was seen."""
        self._options = options
        self._lookups = lookups
        self._patterns = Patterns(options.scope, shape)
        self._selection = options.selection
        self._verdicts: dict[bytes, bool] = {}
        self._migrated = shape.migrations
        special: dict[bytes, Callable[[Entry], bool]] = {
            b"renameCollection": self._rename,
            b"dropDatabase": self._in_database,
        }
        scope = options.scope.kind.value
        # Without showExpandedEvents no other's command is read: no stream resumes after it.
        self._commands = {
            name: special.get(name, self._on_collection)
            for name in names_read(Source.COMMAND, shape, scope)
        }
        self._noops = names_read(Source.NO_OP, shape, scope)
        self._keeps_images = shape.images_in_log and options.before_change != OFF

    def __call__(self, source: Iterable[bytes]) -> Iterator[Entry]:
        """Pass on the entries to transform; log order, nothing held back."""
        start, verdicts, write = self._options.start, self._verdicts, WRITES
        for raw in source:
            entry = Entry(raw)
            self.scanned = time = entry.time
            if entry.op in write:
                if time < start:
                    continue
                verdict = verdicts.get(entry.namespace)
                if verdict is None:
                    verdict = self._judge(entry.namespace)
                if verdict and (not entry.from_migrate or self.shows(entry)):
                    yield entry
            elif self._other(entry) and time >= start:
                yield entry

    def operation(self, entry: Entry) -> bool:
        """Whether an operation (also one inside a transaction) is of this stream."""
        if entry.op in WRITES:
            verdict = self._verdicts.get(entry.namespace)
            return self._judge(entry.namespace) if verdict is None else verdict
        if entry.op == b"c":
            rule = self._commands.get(entry.command)
            return rule is not None and rule(entry)
        return False

    def shows(self, entry: Entry) -> bool:
        """Whether an entry is visible although a migration may have written it."""
        if self._migrated or not entry.from_migrate:
            return True
        return self._options.shape.system and entry.command in SHOWN_THOUGH_MIGRATED

    def touches(self, namespace: bytes) -> bool:
        """Whether a namespace is of this stream."""
        if self._patterns.namespace.match(namespace) is None:
            return False
        return self._selection is None or self._selection.collection(namespace)

    def _judge(self, namespace: bytes) -> bool:
        if len(self._verdicts) >= MAX_VERDICTS:
            self._verdicts.clear()
        views = self._patterns.views if self._options.shape.expanded else None
        verdict = self.touches(namespace) or bool(views and views.match(namespace))
        self._verdicts[namespace] = verdict
        return verdict

    def _other(self, entry: Entry) -> bool:
        if entry.op == b"c":
            if entry.command in TRANSACTION_ENDS:
                return self._transaction(entry) and self.shows(entry)
            if entry.command == b"abortTransaction":
                self._lookups.forget(entry)
            return self.operation(entry) and self.shows(entry)
        if entry.op != b"n":
            return False
        if self._keeps_images and self.touches(entry.namespace):
            self._lookups.remember(entry)
        return self._noop(entry) and self.shows(entry)

    def _transaction(self, entry: Entry) -> bool:
        """Only the entry that ends a transaction passes; the ones before it are kept."""
        ends = self._ends_transaction(entry)
        if ends and entry.time < self._options.start:
            self._lookups.forget(entry)
        return ends

    def _ends_transaction(self, entry: Entry) -> bool:
        if entry.command == b"commitTransaction":
            return entry.is_commit
        span = entry.body[b"applyOps"]
        if span[0] != ARRAY:
            return False
        if entry.is_partial or entry.is_prepare:
            self._lookups.remember(entry)
            return False
        names = entry.fields
        return self._options.shape.unwinds_all or (b"lsid" in names and b"txnNumber" in names)

    def _on_collection(self, entry: Entry) -> bool:
        if not self._patterns.command.match(entry.namespace):
            return False
        span = entry.body[entry.command]
        if span[0] != STRING:
            return False
        name = text_of(entry.raw, span)
        if self._patterns.collection.match(name) is None:
            return False
        database = entry.namespace.partition(b".")[0]
        return self._selection is None or self._selection.collection(database + b"." + name)

    def _rename(self, entry: Entry) -> bool:
        if not self._patterns.command.match(entry.namespace):
            return False
        spans = (entry.body.get(b"renameCollection"), entry.body.get(b"to"))
        return any(
            span is not None and span[0] == STRING and self.touches(text_of(entry.raw, span))
            for span in spans
        )

    def _in_database(self, entry: Entry) -> bool:
        if self._patterns.command.match(entry.namespace) is None:
            return False
        database = entry.namespace.partition(b".")[0]
        return self._selection is None or self._selection.database(database)

    def _noop(self, entry: Entry) -> bool:
        kind = kind_of(entry)
        if kind not in self._noops:
            return False
        if kind != END_OF_TRANSACTION:
            return self.touches(entry.namespace)
        span = entry.second[kind]
        return span[0] == ARRAY and any(
            each[0] == STRING and self.touches(text_of(entry.raw, each))
            for _, each in iter_spans(entry.raw, span[1])
        )
