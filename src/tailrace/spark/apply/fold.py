"""One key's events of a batch, put onto its row: what becomes of the document.

Events come in token order. One that is older than the row changes nothing: a loaded row
shows all that was effective at its read; a row made of events knows the last one's token.
Updates apply the raw diff to the stored bytes, so that nothing is looked up and nothing
of the document is rewritten. An update without a row is an error, but for what came
before the end of the load: its document was deleted before its range was read.

Knows no Spark: ``fold`` takes and gives plain values, and is tested as such.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from tailrace.errors import BadBson
from tailrace.oplog.deltas import apply_delta


class Write(NamedTuple):
    """One event of one key."""

    operation: str
    token: str
    cluster_time: int
    effective: int
    document_key: bytes
    full_document: bytes | None
    raw_diff: bytes | None


@dataclass(frozen=True, slots=True)
class Row:
    """A document as the table has it; ``token`` is None where a load read it."""

    document_key: bytes
    """Empty in a row that was read back: every write brings it again."""
    document: bytes
    cluster_time: int
    token: str | None
    deleted: bool = False


class UpdateWithoutRow(Exception):
    """An update of a document that is not there; the token says which."""

    def __init__(self, token: str, reason: str) -> None:
        super().__init__(token, reason)
        self.token = token
        self.reason = reason


def fold(
    row: Row | None, writes: Iterable[Write], *, complete_from: int, soft: bool = False
) -> Row | None:
    """The row behind the writes; None when there is none.

    ``complete_from`` is the time from which every document has a row. ``soft`` keeps
    rows of deleted documents, as they were last.
    """
    for write in writes:
        if row is not None and _is_known(row, write):
            continue
        row = _applied(row, write, complete_from, soft)
    return row


def _is_known(row: Row, write: Write) -> bool:
    if row.token is None:
        return write.effective <= row.cluster_time
    return write.token <= row.token


def _applied(row: Row | None, write: Write, complete_from: int, soft: bool) -> Row | None:
    if write.operation == "delete":
        if row is None or not soft:
            return None
        return replace(
            row,
            document_key=write.document_key,
            cluster_time=write.cluster_time,
            token=write.token,
            deleted=True,
        )
    if write.operation == "update":
        if row is None or row.deleted:
            if write.effective > complete_from:
                raise UpdateWithoutRow(write.token, "its document has no row")
            return row
        document = _updated(row, write)
    else:
        document = write.full_document or b""
    return Row(write.document_key, document, write.cluster_time, write.token)


def _updated(row: Row, write: Write) -> bytes:
    try:
        return apply_delta(row.document, write.raw_diff or b"")
    except BadBson as error:
        raise UpdateWithoutRow(write.token, str(error)) from error
