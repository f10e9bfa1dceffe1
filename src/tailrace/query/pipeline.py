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

from tailrace.errors import OptionError, ServerError
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
NEVER = (1000, 0, 0)
SPLIT_ARGUMENT, SPLIT_NOT_LAST, SPLIT_NO_OBJECT = 7182800, 7182802, 7182899


class Pipeline:
    """A compiled pipeline."""

    def __init__(self, stages: Sequence[Stage], *, splits: bool = False) -> None:
        self._stages = tuple(stages)
        self.splits = splits
        """Whether large events are to be split behind all of it."""

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
    values = encoded(stages)
    named = [_named(value) for value in values]
    read = [_stage(name, argument, scope) for name, argument in named]
    for name, _ in named:
        if name not in STAGES and name != SPLIT:
            raise refused(NOT_PERMITTED, f"{name} is not permitted in a $changeStream pipeline")
    names = [name for name, _ in named]
    if SPLIT in names[:-1]:
        raise refused(SPLIT_NOT_LAST, f"{SPLIT} must be the last stage in the pipeline")
    return Pipeline([stage for stage in read if stage is not None], splits=SPLIT in names)


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


def _named(value: Value) -> tuple[str, Value]:
    found = list(fields(value)) if value[0] == OBJECT else []
    if len(found) != 1:
        raise refused(
            ONE_NAME_ONLY, "A pipeline stage specification object must contain exactly one field."
        )
    return found[0][0].decode(errors="replace"), found[0][1]


def _check_split(argument: Value, context: Context) -> None:
    if not splits_events(context):
        raise _unknown(SPLIT)
    if argument[0] != OBJECT and not context.since(7, 0):
        raise refused(SPLIT_NO_OBJECT, f"{SPLIT} must take a nested object")
    if argument[0] != OBJECT or list(fields(argument)):
        raise refused(SPLIT_ARGUMENT, f"{SPLIT} spec should be an empty object")


def splits_events(context: Context) -> bool:
    """Whether the release has ``$changeStreamSplitLargeEvent``."""
    return context.since(7, 0) or (6, 0, 9) <= context.version < (6, 1, 0)


def _stage(name: str, argument: Value, scope: Scope) -> Stage | None:
    """A stage ready to run; None for one that is not run here."""
    stage = STAGES.get(name)
    version = scope.context.version
    if stage is not None and version >= stage.since:
        return stage.read(argument, scope)
    if name == SPLIT:
        _check_split(argument, scope.context)
    elif version < KNOWN_ELSEWHERE.get(name, NEVER):
        raise _unknown(name)
    return None


def _unknown(name: str) -> ServerError:
    return refused(UNKNOWN_STAGE, f"Unrecognized pipeline stage name: '{name}'")
