"""Look-ups from files: what a recording kept of documents and their former states.

``documents`` holds ``{ns, doc}`` and perhaps ``uuid``: every document that existed
at the recording's end. ``pre_images`` is a copy of ``config.system.preimages``. Both
are read when first asked for. Earlier entries of open transactions are spooled.

Which document a look-up finds after a drop and re-create depends on the release: see
``Shape.looks_up_by_uuid``.
"""

from __future__ import annotations

from functools import cached_property

from tailrace.errors import BadDocument
from tailrace.event.shape import Shape
from tailrace.oplog.archive import Archive, Source
from tailrace.oplog.spool import TransactionSpool
from tailrace.query.ordering import sort_key
from tailrace.query.paths import field_value
from tailrace.raw import Span, spans
from tailrace.raw.elements import BINARY, INT32, INT64, OBJECT, STRING, TIMESTAMP

_UUID_AT = 5
"""Behind a binary value's length and subtype."""


class RecordedLookups:
    """Answers from the files of a recording."""

    def __init__(
        self,
        shape: Shape,
        *,
        documents: Source | None = None,
        pre_images: Source | None = None,
    ) -> None:
        self._by_uuid, self._follows = shape.looks_up_by_uuid, shape.follows_renames
        self._documents_file = None if documents is None else Archive(documents)
        self._pre_images_file = None if pre_images is None else Archive(pre_images)
        self._spool = TransactionSpool()
        self.remember = self._spool.remember
        self.forget = self._spool.forget
        self.entry = self._spool.entry

    def close(self) -> None:
        """Give back what was spooled."""
        self._spool.close()

    def pre_image(self, uuid: bytes, time: int, index: int) -> bytes | None:
        """The state that the recording kept for this operation."""
        return self._pre_images.get((uuid, time, index))

    def document(self, namespace: bytes, uuid: bytes, key: bytes, time: int) -> bytes | None:
        """The document with these key values as it was when the recording ended."""
        wanted = spans(key)
        id_span = wanted.get(b"_id")
        if id_span is None:
            return None
        database = namespace.partition(b".")[0]
        rows = self._documents.get((database, sort_key(_value(key, id_span))), ())
        for row_namespace, row_uuid, document in rows:
            if self._is_same(row_namespace == namespace, row_uuid, uuid) and _has_values(
                document, key, wanted
            ):
                return document
        return None

    def _is_same(self, same_name: bool, row_uuid: bytes | None, uuid: bytes) -> bool:
        """Whether a row is of the collection that is asked."""
        if not self._by_uuid or row_uuid is None:
            return same_name
        return row_uuid == uuid and (same_name or self._follows)

    @cached_property
    def _documents(self) -> dict[tuple[bytes, object], list[tuple[bytes, bytes | None, bytes]]]:
        found: dict[tuple[bytes, object], list[tuple[bytes, bytes | None, bytes]]] = {}
        for row in self._documents_file or ():
            fields = spans(row)
            ns = _of_kind(fields, b"ns", STRING)
            doc = _of_kind(fields, b"doc", OBJECT)
            raw = row[doc[1] : doc[2]]
            uuid = fields.get(b"uuid")
            row_uuid = row[uuid[1] + _UUID_AT : uuid[2]] if uuid and uuid[0] == BINARY else None
            namespace = row[ns[1] + 4 : ns[2] - 1]
            key = (namespace.partition(b".")[0], sort_key(field_value(raw, (b"_id",))))
            found.setdefault(key, []).append((namespace, row_uuid, raw))
        return found

    @cached_property
    def _pre_images(self) -> dict[tuple[bytes, int, int], bytes]:
        found: dict[tuple[bytes, int, int], bytes] = {}
        for row in self._pre_images_file or ():
            fields = spans(row)
            key = spans(row, _of_kind(fields, b"_id", OBJECT)[1])
            uuid = _of_kind(key, b"nsUUID", BINARY)
            time = _of_kind(key, b"ts", TIMESTAMP)
            index = key.get(b"applyOpsIndex", (0, 0, 0))
            image = _of_kind(fields, b"preImage", OBJECT)
            number = (
                int.from_bytes(row[index[1] : index[2]], "little")
                if index[0] in (INT32, INT64)
                else 0
            )
            place = (
                row[uuid[1] + _UUID_AT : uuid[2]],
                int.from_bytes(row[time[1] : time[2]], "little"),
                number,
            )
            found[place] = row[image[1] : image[2]]
        return found


def _value(raw: bytes, span: Span) -> tuple[int, bytes]:
    return span[0], raw[span[1] : span[2]]


def _has_values(document: bytes, key: bytes, wanted: dict[bytes, Span]) -> bool:
    """Whether a document has all the key's values; a shard key's fields may be dotted."""
    return all(
        sort_key(field_value(document, tuple(name.split(b".")))) == sort_key(_value(key, span))
        for name, span in wanted.items()
        if name != b"_id"
    )


def _of_kind(fields: dict[bytes, Span], name: bytes, kind: int) -> Span:
    span = fields.get(name)
    if span is None or span[0] != kind:
        raise BadDocument(f"a row without {name.decode()}, or with another type of it", field=name)
    return span
