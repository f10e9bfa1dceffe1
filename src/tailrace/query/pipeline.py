"""A user's pipeline, read once and run over each event.

``compile_pipeline`` checks all of it, in order, and raises what the server would when
the stream is opened. What cannot be evaluated here is left to the source server from
that stage on, where there is one; else the pipeline is refused by the operator's name.
``explain`` says which stage runs where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Protocol

import bson
from bson.errors import BSONError

from tailrace.errors import NotEvaluable, OptionError, ServerError
from tailrace.query.context import MAX_NESTING, Context, not_here, refused
from tailrace.query.expressions import Scope, parse
from tailrace.query.expressions.parser import check_variable
from tailrace.query.prefilter import Prefilter, prefilter
from tailrace.query.stages import KNOWN_ELSEWHERE, SPLIT, STAGES, Stage
from tailrace.query.values import NULL_VALUE, Value, fields, items, truthy
from tailrace.raw import spans
from tailrace.raw.elements import ARRAY, OBJECT

ONE_NAME_ONLY = 40323
UNKNOWN_STAGE = 40324
NOT_PERMITTED = 20
TOO_DEEP = 15
SPLIT_ARGUMENT, SPLIT_NOT_LAST, SPLIT_NO_OBJECT = 7182800, 7182802, 7182899
FIELD_IN_LET = 4890500
NEVER = (1000, 0, 0)
HERE, ON_THE_SERVER = "here", "server"


@dataclass(frozen=True, slots=True)
class Step:
    """One stage: how it runs here, or why it does not."""

    name: str
    raw: bytes
    """The stage as BSON, for whoever runs it elsewhere."""
    run: Stage | None = None
    reason: str = ""


class Evaluator(Protocol):
    """Runs stages over documents somewhere else: the source server."""

    def evaluate(self, stages: Sequence[bytes], documents: Sequence[bytes]) -> list[bytes]:
        """What the stages make of the documents, in their order; raw BSON both ways.

        Called with as many documents as fit into a batch; without any when a stream is
        opened, so that the server refuses what it does not know. ``ServerError`` is of one of
        the documents: the caller asks again, one by one. Nothing is kept between two calls.
        """


class Pipeline:
    """A compiled pipeline."""

    def __init__(
        self,
        steps: Sequence[Step],
        elsewhere: Evaluator | None = None,
        early: Prefilter | None = None,
    ) -> None:
        self.splits = any(step.name == SPLIT for step in steps)
        """Whether large events are to be split behind all of it."""
        self.elsewhere = elsewhere
        """Who evaluates what is not evaluated here."""
        self.early = early
        """What of it can be asked before an event is built."""
        self._all = tuple(steps)
        self._steps = tuple(step for step in steps if step.name != SPLIT)

    def run(self, event: bytes) -> bytes | None:
        """The event as the stages leave it; None when one of them drops it."""
        made, place = self.advance(event)
        if place < len(self._steps):
            raise NotEvaluable(self._steps[place].reason, operator=self._steps[place].name)
        return made

    def advance(self, event: bytes) -> tuple[bytes | None, int]:
        """The event as far as stages run here, and how many of them it has behind it."""
        place = 0
        for place, step in enumerate(self._steps):
            if step.run is None:
                return event, place
            try:
                made = step.run(event)
            except NotEvaluable:
                if self.elsewhere is None:
                    raise
                return event, place
            if made is None:
                return None, len(self._steps)
            event = made
        return event, len(self._steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The stages that are run, here or elsewhere."""
        return self._steps

    @property
    def end(self) -> int:
        """The place of an event that has all stages behind it."""
        return len(self._steps)

    def rest(self, place: int) -> list[bytes]:
        """The stages from a place on, as BSON, to be run elsewhere."""
        return [step.raw for step in self._steps[place:]]

    def explain(self) -> list[dict[str, str]]:
        """Each stage, where it runs, and why not here."""
        return [
            {
                "stage": step.name,
                "runs": HERE if step.run is not None or step.name == SPLIT else ON_THE_SERVER,
                **({"because": step.reason} if step.reason else {}),
            }
            for step in self._all
        ]


def compile_pipeline(
    stages: Sequence[Mapping[str, Any]], context: Context, elsewhere: Evaluator | None = None
) -> Pipeline:
    """The pipeline, or the error with which the server refuses it.

    With somebody ``elsewhere`` to ask, what is not evaluated here goes there.
    """
    hands_over = elsewhere is not None
    scope = Scope(context, places=True)
    values = encoded(stages)
    named = [_named(value) for value in values]
    steps: list[Step] = []
    away = ""
    for (name, argument), value in zip(named, values, strict=True):
        step = _step(name, argument, value[1], scope, hands_over=hands_over)
        if step.reason or (away and name != SPLIT):
            away = step.reason or away
            step = Step(name, value[1], None, away)
        steps.append(step)
        scope = replace(scope, places=scope.places and keeps_places(name, argument))
    _check_permitted([name for name, _ in named])
    queries = [
        argument for (_, argument), _ in takewhile(_matches_here, zip(named, steps, strict=True))
    ]
    made = Pipeline(steps, elsewhere, prefilter(queries, Scope(context)))
    handed = next((place for place, step in enumerate(made.steps) if step.run is None), None)
    if elsewhere is not None and handed is not None:
        elsewhere.evaluate(made.rest(handed), ())
    return made


def _matches_here(stage: tuple[tuple[str, Value], Step]) -> bool:
    (name, _), step = stage
    return name == "$match" and step.run is not None


def variables_of(let: Mapping[str, Any] | None, context: Context) -> dict[bytes, Value]:
    """The variables of ``let``, which may name earlier ones and no fields."""
    found = dict(context.variables)
    value = encoded_value("let", dict(let or {}))
    for name, expression in fields(value):
        check_variable(name, user=True)
        node = parse(expression, Scope(replace(context, variables=found)))
        if node.constant is None:
            raise refused(FIELD_IN_LET, "Command let Expression tried to access a field")
        found[name] = node.constant if node.constant[0] else NULL_VALUE
    return found


def keeps_places(name: str, argument: Value) -> bool:
    """Whether a stage hands on the very document, so that missing fields keep their places."""
    if name == "$project":
        return not any(truthy(each) for key, each in fields(argument) if key != b"_id")
    if name == "$redact":
        return b"$$DESCEND" not in argument[1]
    return name not in ("$replaceRoot", "$replaceWith")


def _step(name: str, argument: Value, raw: bytes, scope: Scope, *, hands_over: bool) -> Step:
    try:
        if scope.context.collated and name in STAGES:
            raise not_here("collation", "only the simple one is known")
        return Step(name, raw, _stage(name, argument, scope))
    except NotEvaluable as error:
        if not hands_over:
            raise
        return Step(name, raw, None, error.message)


def _check_permitted(names: Sequence[str]) -> None:
    for name in names:
        if name not in STAGES and name != SPLIT:
            raise refused(NOT_PERMITTED, f"{name} is not permitted in a $changeStream pipeline")
    if SPLIT in names[:-1]:
        raise refused(SPLIT_NOT_LAST, f"{SPLIT} must be the last stage in the pipeline")


def encoded(stages: Sequence[Mapping[str, Any]]) -> list[Value]:
    """The stages as BSON values."""
    value = encoded_value("pipeline", list(stages))
    _check_nesting(value)
    return items(value)


def encoded_value(name: str, given: Any) -> Value:
    """An argument as a BSON value; ``OptionError`` for what is none."""
    try:
        raw = bson.encode({"v": given})
    except (BSONError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise OptionError(f"{name} cannot be written as BSON: {error}", option=name) from error
    kind, start, end = spans(raw)[b"v"]
    return kind, raw[start:end]


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
