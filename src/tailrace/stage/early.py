"""What the user's first ``$match`` drops before its event is built.

Only writes are judged here, by what their entry says; the whole query is asked of the
finished event as well. The operations of a transaction have been counted by now, so
that the token of nothing changes. Up to the token of a resume everything passes: the
event of that token must be met.

Rules: facts/server-semantics, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from tailrace.event.crud import kind_of_write
from tailrace.event.mould import ns_document
from tailrace.event.views import is_view
from tailrace.oplog.entry import WRITES, Entry
from tailrace.raw import document, element, spans, string_value
from tailrace.raw.elements import OBJECT, STRING, TIMESTAMP
from tailrace.stage.options import StreamOptions

MAX_VERDICTS = 50_000
"""Past this many namespaces the remembered verdicts start anew."""


class Prefilter(Protocol):
    """What can be said of an event by its type and namespace, and by its key and time."""

    @property
    def kind(self) -> Callable[[bytes], bool] | None:
        """Asked of ``{operationType, ns}``."""

    @property
    def entry(self) -> Callable[[bytes], bool] | None:
        """Asked of ``{documentKey, clusterTime}``."""


class EarlyMatch:
    """Lets through the entries whose events the user's query may want."""

    def __init__(self, wanted: Prefilter, options: StreamOptions) -> None:
        self._kind, self._entry = wanted.kind, wanted.entry
        client = options.client_token
        self._after = client.cluster_time if client is not None else -1
        self._keys_are_known = not options.shape.shard_keys
        self._verdicts: dict[tuple[bytes, bytes], bool] = {}

    def __call__(self, source: Iterable[Entry]) -> Iterator[Entry]:
        """The entries that are not known to be unwanted, in their order."""
        after, wants = self._after, self._wants
        for entry in source:
            if entry.op not in WRITES or entry.time <= after or wants(entry):
                yield entry

    def _wants(self, entry: Entry) -> bool:
        if self._kind is not None:
            pair = kind_of_write(entry), entry.namespace
            verdict = self._verdicts.get(pair)
            if verdict is None:
                verdict = self._judge(*pair)
            if not verdict:
                return False
        if self._entry is None or is_view(entry.namespace):
            return True
        key = _key(entry)
        if key is None or not self._keys_are_known:
            return True
        time = entry.time.to_bytes(8, "little")
        known = document(
            element(b"clusterTime", TIMESTAMP, time), element(b"documentKey", OBJECT, key)
        )
        return self._entry(known)

    def _judge(self, kind: bytes, namespace: bytes) -> bool:
        if len(self._verdicts) >= MAX_VERDICTS:
            self._verdicts.clear()
        known = document(
            element(b"operationType", STRING, string_value(kind)),
            element(b"ns", OBJECT, ns_document(namespace)),
        )
        judge = self._kind
        verdict = is_view(namespace) or judge is None or judge(known)
        self._verdicts[kind, namespace] = verdict
        return verdict


def _key(entry: Entry) -> bytes | None:
    """The ``documentKey`` of a write's event, where the entry says it as it is."""
    if entry.op == b"i":
        if entry.o2 is not None or entry.o is None:
            return entry.o2
        span = spans(entry.o).get(b"_id")
        return document(element(b"_id", span[0], entry.o[span[1] : span[2]])) if span else None
    return entry.o2 if entry.op == b"u" else entry.o
