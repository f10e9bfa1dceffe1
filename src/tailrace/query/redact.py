"""``$redact``: a document is kept, dropped, or gone down into, level by level.

The expression is asked of the whole document and, where it says so, of every document
inside it, with ``$$CURRENT`` as the one it is asked of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tailrace.query.context import refused
from tailrace.query.expressions import Frame, Scope, parse
from tailrace.query.values import MISSING, Value, array, document, fields, items, string
from tailrace.raw.elements import ARRAY, OBJECT

VERDICTS = {b"DESCEND": string("descend"), b"PRUNE": string("prune"), b"KEEP": string("keep")}
NOT_A_VERDICT = 17053


class Redact:
    """The stage, for one expression."""

    def __init__(self, argument: Value, scope: Scope) -> None:
        inside = replace(scope, current=True, names=scope.names | {b"CURRENT", *VERDICTS})
        self._node = parse(argument, inside)

    def run(self, root: bytes, variables: Mapping[bytes, Value]) -> bytes | None:
        """The document with what the expression prunes taken out; None when all of it is."""
        frame = Frame(root, {**variables, **VERDICTS})
        kind, raw = self._object((OBJECT, root), frame)
        return raw if kind else None

    def _object(self, value: Value, frame: Frame) -> Value:
        verdict = self._node.run(frame.inside({b"CURRENT": value}))
        if verdict == VERDICTS[b"KEEP"]:
            return value
        if verdict == VERDICTS[b"PRUNE"]:
            return MISSING
        if verdict != VERDICTS[b"DESCEND"]:
            raise refused(
                NOT_A_VERDICT,
                "$redact's expression should not return anything aside from the variables "
                "$$KEEP, $$DESCEND, and $$PRUNE",
            )
        return document((name, self._below(each, frame)) for name, each in fields(value))

    def _below(self, value: Value, frame: Frame) -> Value:
        if value[0] == OBJECT:
            return self._object(value, frame)
        if value[0] == ARRAY:
            return array(self._below(each, frame) for each in items(value))
        return value
