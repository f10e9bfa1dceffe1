"""The common form of a write, recognised in two steps instead of field by field.

Nearly all entries of a busy log are inserts, updates and deletes whose fields stand
in one of few orders. Two patterns cover them: what stands before ``o``, and what
stands behind ``o`` and ``o2``, whose lengths say where they end. Any other entry, and
any that is damaged, is nobody's business here: the general way reads it.

Format: facts/server-semantics, section 3. A pattern leaves nothing open: each byte of
the entry is either fixed, of a fixed-size value, or inside a document of known length.
"""

from __future__ import annotations

import re

Plain = tuple[bytes, bytes, bytes, bytes, bytes | None, int, bytes]
"""op, ns, UUID, ``o``, ``o2``, time, wall clock."""

_LSID = rb"\x03lsid\x00\x48\x00\x00\x00.{68}"
_PREVIOUS = rb"\x03prevOpTime\x00\x1c\x00\x00\x00.{24}"
_WRITE = (
    rb"\x02op\x00\x02\x00\x00\x00([iud])\x00\x02ns\x00(....)([^\x00]*)\x00"
    rb"\x05ui\x00\x10\x00\x00\x00\x04(.{16})\x03o\x00"
)
_head = re.compile(rb"....(?:%b\x12txnNumber\x00.{8})?%b" % (_LSID, _WRITE), re.DOTALL).match
_tail = re.compile(
    rb"(?:\x10stmtId\x00....)?\x11ts\x00(.{8})\x12t\x00.{8}(?:\x12v\x00.{8})?"
    rb"\x09wall\x00(.{8})(?:\x12v\x00.{8})?(?:\x10stmtId\x00....)?(?:%b)?\x00\Z" % _PREVIOUS,
    re.DOTALL,
).match
_inner_head = re.compile(rb"....%b" % _WRITE, re.DOTALL).match
_SECOND = b"\x03o2\x00"
_SECOND_BYTES = len(_SECOND)


def plain_write(raw: bytes, *, inner: bool = False) -> Plain | None:
    """The parts of a write in its common form; None for every other entry.

    An operation inside a transaction (``inner``) has no time and no wall clock of its own.
    """
    head = _inner_head(raw) if inner else _head(raw)
    if head is None:
        return None
    op, size, namespace, uuid = head.groups()
    if int.from_bytes(size, "little") != len(namespace) + 1:
        return None
    at = head.end()
    end = at + int.from_bytes(raw[at : at + 4], "little")
    o, o2 = raw[at:end], None
    if raw.startswith(_SECOND, end):
        at = end + _SECOND_BYTES
        end = at + int.from_bytes(raw[at : at + 4], "little")
        o2 = raw[at:end]
    if inner:
        return (op, namespace, uuid, o, o2, 0, b"") if end + 1 == len(raw) else None
    tail = _tail(raw, end)
    if tail is None:
        return None
    time, wall = tail.groups()
    return op, namespace, uuid, o, o2, int.from_bytes(time, "little"), wall
