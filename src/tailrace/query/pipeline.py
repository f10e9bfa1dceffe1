"""A user's pipeline, read once and run over each event.

``compile_pipeline`` checks all of it, in order, and raises what the server would when
the stream is opened. A stage that a change stream does not take, and an operator that
nobody knows, are refused with the server's codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import bson
from bson.errors import BSONError

from tailrace.errors import OptionError
from tailrace.query.context import MAX_NESTING, Context, refused
from tailrace.query.expressions import Scope
from tailrace.query.stages import KNOWN_ELSEWHERE, SPLIT, STAGES, Stage
from tailrace.query.values import Value, fields, items
from tailrace.raw import spans
from tailrace.raw.elements import ARRAY, OBJECT

ONE_NAME_ONLY = 40323
UNKNOWN_STAGE = 40324
NOT_PERMITTED = 20
TOO_DEEP = 15


class Pipeline:
    """A compiled pipeline."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)

    def run(self, event: bytes) -> bytes | None:
        """The event as the stages leave it; None when one of them drops it."""
        for stage in self._stages:
            made = stage(event)
            if made is None:
                return None
            event = made
        return event


def compile_pipeline(stages: Sequence[Mapping[str, Any]], context: Context) -> Pipeline:
    """The pipeline, or the error with which the server refuses it."""
    scope = Scope(context)
    return Pipeline([_stage(each, scope) for each in encoded(stages)])


def encoded(stages: Sequence[Mapping[str, Any]]) -> list[Value]:
    """The stages as BSON values."""
    try:
        raw = bson.encode({"pipeline": list(stages)})
    except (BSONError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise OptionError(
            f"the pipeline cannot be written as BSON: {error}", option="pipeline"
        ) from error
    _, start, end = spans(raw)[b"pipeline"]
    value = (ARRAY, raw[start:end])
    _check_nesting(value)
    return items(value)


def _check_nesting(value: Value) -> None:
    """The error of stages that nest so deep that reading them would fail."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise refused(TOO_DEEP, f"the pipeline nests deeper than {MAX_NESTING} levels")
        level = [
            inner for each in level for _, inner in fields(each) if inner[0] in (OBJECT, ARRAY)
        ]


def _stage(value: Value, scope: Scope) -> Stage:
    found = list(fields(value)) if value[0] == OBJECT else []
    if len(found) != 1:
        raise refused(
            ONE_NAME_ONLY, "A pipeline stage specification object must contain exactly one field."
        )
    name, argument = found[0][0].decode(errors="replace"), found[0][1]
    stage = STAGES.get(name)
    if stage is not None and scope.context.version >= stage.since:
        return stage.read(argument, scope)
    if name in KNOWN_ELSEWHERE or name == SPLIT:
        raise refused(NOT_PERMITTED, f"{name} is not permitted in a $changeStream pipeline")
    raise refused(UNKNOWN_STAGE, f"Unrecognized pipeline stage name: '{name}'")
