"""How ``$project``, ``$addFields`` and ``$unset`` are read into a ``Projection``.

The first field that says so decides whether a ``$project`` includes or excludes;
``_id`` may differ. Dotted names and nested objects mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tailrace.query.context import refused
from tailrace.query.expressions import Scope, parse
from tailrace.query.expressions.parser import is_known, path_of
from tailrace.query.projection import Projection
from tailrace.query.values import NUMBERS, Value, fields, truthy
from tailrace.raw.elements import BOOL, OBJECT

Path = tuple[bytes, ...]
ID = b"_id"
NO_FIELD = 51272
EMPTY_BELOW = 51270
INCLUDES_AND_EXCLUDES = 31254
EXCLUDES_AND_INCLUDES = 31253
COMPUTED_IN_EXCLUSION = 31310
ADDS_EMPTY_BELOW = 40180


@dataclass(frozen=True, slots=True)
class Form:
    """The codes with which a stage refuses a badly formed field."""

    empty: int
    """An empty object; 0 where it is a value like any other."""
    several: int
    """An operator with other names beside it."""
    unknown: int = 0
    """An operator that nobody knows."""
    positional: int = 0


PROJECTED = Form(EMPTY_BELOW, several=16410, unknown=31325, positional=31324)
ADDED = Form(ADDS_EMPTY_BELOW, several=40181)
TAKES_EMPTY_SINCE = (7, 0)


def _check_operator(names: list[bytes], form: Form, scope: Scope) -> None:
    if len(names) > 1:
        raise refused(form.several, "an operator must be alone in its object")
    name = names[0].decode(errors="replace")
    if form.unknown and not is_known(name, scope):
        raise refused(form.unknown, f"Unknown expression {name}")


def parse_project(argument: Value, scope: Scope) -> Projection:
    """A ``$project``: what is included, excluded or computed."""
    leaves = list(_leaves(argument, (), scope, PROJECTED))
    if not leaves:
        raise refused(NO_FIELD, "projection specification must have at least one field")
    including = _including(leaves)
    check_collisions([path for path, _ in leaves], (31249, 31250))
    tree = Projection(keeps=not including)
    keeps_id = True
    for path, value in leaves:
        says = _flag(value)
        if path == (ID,) and says is not None:
            keeps_id = says
            continue
        if says is None:
            _at(tree, path).compute(path[-1], parse(value, scope))
        else:
            _at(tree, path).name(path[-1])
    id_below = any(path[0] == ID and len(path) > 1 for path, _ in leaves)
    if keeps_id == including and not id_below and ID not in tree.computed:
        tree.name(ID)
    return tree


def parse_add_fields(argument: Value, scope: Scope) -> Projection:
    """An ``$addFields``: every leaf is an expression."""
    form = ADDED if not scope.context.since(*TAKES_EMPTY_SINCE) else replace(ADDED, empty=0)
    leaves = list(_leaves(argument, (), scope, form))
    check_collisions([path for path, _ in leaves], (40176, 40176))
    tree = Projection(keeps=True, places=scope.places)
    for path, value in leaves:
        _at(tree, path).compute(path[-1], parse(value, scope))
    return tree


def exclude(paths: list[Path]) -> Projection:
    """A projection that only leaves fields out."""
    check_collisions(paths, (31249, 31250))
    tree = Projection(keeps=True)
    for path in paths:
        _at(tree, path).name(path[-1])
    return tree


def _including(leaves: list[tuple[Path, Value]]) -> bool:
    """Whether a projection includes, or the error of one that does both."""
    verdict: bool | None = None
    for path, value in leaves:
        says = _flag(value)
        wanted = True if says is None else says
        if path == (ID,) and says is not None:
            continue
        if verdict is None:
            verdict = wanted
        elif verdict and not wanted:
            raise refused(
                INCLUDES_AND_EXCLUDES,
                f"Cannot do exclusion on field {dotted(path)} in inclusion projection",
            )
        elif not verdict and wanted:
            code = COMPUTED_IN_EXCLUSION if says is None else EXCLUDES_AND_INCLUDES
            raise refused(
                code, f"Cannot do inclusion on field {dotted(path)} in exclusion projection"
            )
    if verdict is None:
        return bool(_flag(leaves[0][1]))
    return verdict


def _flag(value: Value) -> bool | None:
    """Whether a leaf includes or excludes; None when it is an expression."""
    return truthy(value) if value[0] in NUMBERS or value[0] == BOOL else None


def _leaves(argument: Value, above: Path, scope: Scope, form: Form) -> Iterator[tuple[Path, Value]]:
    for name, value in fields(argument):
        if form.positional and name.endswith(b".$"):
            raise refused(form.positional, "positional projection is not allowed here")
        path = above + path_of(name)
        if value[0] != OBJECT:
            yield path, value
            continue
        inner = [each for each, _ in fields(value)]
        if not inner and not form.empty:
            yield path, value
            continue
        if not inner:
            raise refused(
                form.empty,
                f"an empty object is not a valid value. Found empty object at path {dotted(path)}",
            )
        if any(each.startswith(b"$") for each in inner):
            _check_operator(inner, form, scope)
            yield path, value
        else:
            yield from _leaves(value, path, scope, form)


def _at(tree: Projection, path: Path) -> Projection:
    for name in path[:-1]:
        tree = tree.child(name)
    return tree


def check_collisions(paths: list[Path], codes: tuple[int, int]) -> None:
    """The error of two paths of which one is, or lies below, the other."""
    seen: set[Path] = set()
    above: set[Path] = set()
    for path in paths:
        if path in above:
            raise refused(codes[1], f"Path collision at {dotted(path)}")
        for depth in range(1, len(path) + 1):
            if path[:depth] in seen:
                raise refused(codes[0], f"Path collision at {dotted(path)}")
            above.add(path[:depth])
        seen.add(path)


def dotted(path: Path) -> str:
    """A path as it is written."""
    return b".".join(path).decode(errors="replace")
