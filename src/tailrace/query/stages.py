"""The stages that a change stream takes from its user, each from BSON to a function.

One table from a stage's name to how it is read. A compiled stage takes a raw document
and gives it back, another one, or None when it drops it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tailrace.query.context import Version, badly_formed, refused
from tailrace.query.expressions import Frame, Scope, parse
from tailrace.query.expressions.parser import OLDEST, path_of
from tailrace.query.match import parse_match
from tailrace.query.projection import Projection
from tailrace.query.projection_parser import exclude, parse_add_fields, parse_project
from tailrace.query.redact import Redact
from tailrace.query.values import (
    Value,
    array,
    document,
    fields,
    items,
    string_bytes,
    text_bytes,
)
from tailrace.raw.elements import ARRAY, OBJECT, STRING

Stage = Callable[[bytes], "bytes | None"]
Reader = Callable[[Value, Scope], Stage]
NEW_ROOT_IS_NONE = 40228
FILL_NO_OBJECT, FILL_NOTHING, NOT_PERMITTED = 9, 6050203, 20


def _match(argument: Value, scope: Scope) -> Stage:
    if argument[0] != OBJECT:
        raise refused(15959, "the match filter must be an expression in an object")
    wanted = parse_match(argument, scope)
    return lambda raw: raw if wanted(raw) else None


def _project(argument: Value, scope: Scope) -> Stage:
    if argument[0] != OBJECT:
        raise refused(15969, "$project specification must be an object")
    return _reshape(parse_project(argument, scope))


def _add_fields(argument: Value, scope: Scope) -> Stage:
    if argument[0] != OBJECT:
        raise refused(40272, "$addFields specification stage must be an object")
    return _reshape(parse_add_fields(argument, scope))


def _unset(argument: Value, scope: Scope) -> Stage:
    named = items(argument) if argument[0] == ARRAY else [argument]
    if argument[0] not in (ARRAY, STRING):
        raise refused(31002, "$unset specification must be a string or an array")
    if not named:
        raise refused(
            31119, "$unset specification must be a string or an array with at least one field"
        )
    if any(each[0] != STRING for each in named):
        raise refused(
            31120, "$unset specification must be a string or an array containing only string values"
        )
    return _reshape(exclude([path_of(text_bytes(each)) for each in named]))


def _reshape(projection: Projection) -> Stage:
    apply = projection.apply
    return lambda raw: apply(Frame(raw, {}))


def _replace_root(argument: Value, scope: Scope) -> Stage:
    if argument[0] != OBJECT:
        raise refused(40229, "expected an object as specification for $replaceRoot stage")
    root: Value | None = None
    for name, value in fields(argument):
        if name != b"newRoot":
            raise badly_formed(
                scope.context, 40415, f"BSON field '$replaceRoot.{name!r}' is an unknown field."
            )
        root = value
    if root is None:
        raise badly_formed(
            scope.context,
            40414,
            "BSON field '$replaceRoot.newRoot' is missing but a required field",
        )
    return _replace_with(root, scope)


def _replace_with(argument: Value, scope: Scope) -> Stage:
    node = parse(argument, scope)

    def run(raw: bytes) -> bytes:
        kind, made = node.run(Frame(raw, {}))
        if kind != OBJECT:
            raise refused(
                NEW_ROOT_IS_NONE,
                "'newRoot' expression must evaluate to an object, but resulting value was of "
                f"type {kind}",
            )
        return made

    return run


def _redact(argument: Value, scope: Scope) -> Stage:
    redact = Redact(argument, scope)
    return lambda raw: redact.run(raw, {})


def _fill(argument: Value, scope: Scope) -> Stage:
    """Without an order a missing value can only be filled by an expression."""
    if argument[0] != OBJECT:
        raise refused(FILL_NO_OBJECT, "the $fill specification must be an object")
    found = dict(fields(argument))
    output = found.get(b"output")
    if output is None:
        raise badly_formed(
            scope.context, 40414, "BSON field '$fill.output' is missing but a required field"
        )
    if output[0] != OBJECT or not list(fields(output)):
        raise refused(FILL_NOTHING, "$fill needs an object of fields as its output")
    added = []
    for path, how in fields(output):
        given = dict(fields(how)) if how[0] == OBJECT else {}
        if list(given) != [b"value"]:
            raise refused(NOT_PERMITTED, "$fill with a method is not permitted here")
        value = array((string_bytes(b"$" + path), given[b"value"]))
        added.append((path, document([(b"$ifNull", value)])))
    return _add_fields(document(added), scope)


@dataclass(frozen=True, slots=True)
class UserStage:
    """How a stage is read, and since which release a change stream takes it."""

    read: Reader
    since: Version = OLDEST


STAGES: dict[str, UserStage] = {
    "$match": UserStage(_match),
    "$project": UserStage(_project),
    "$addFields": UserStage(_add_fields),
    "$set": UserStage(_add_fields),
    "$unset": UserStage(_unset),
    "$replaceRoot": UserStage(_replace_root),
    "$replaceWith": UserStage(_replace_with),
    "$redact": UserStage(_redact),
    "$fill": UserStage(_fill, since=(5, 3, 0)),
}
"""Every stage that may follow ``$changeStream`` and is run here."""

SPLIT = "$changeStreamSplitLargeEvent"
_SINCE: dict[Version, str] = {
    OLDEST: "$bucket $bucketAuto $changeStream $collStats $count $currentOp $facet $geoNear "
    "$graphLookup $group $indexStats $limit $listLocalSessions $listSessions $lookup $merge $out "
    "$planCacheStats $sample $skip $sort $sortByCount $unwind",
    (4, 4, 0): "$search $unionWith",
    (5, 0, 0): "$searchMeta $setWindowFields",
    (5, 1, 0): "$densify $documents",
}
KNOWN_ELSEWHERE = {name: since for since, names in _SINCE.items() for name in names.split()}
"""Stages that exist, since when, and that a change stream does not take."""
