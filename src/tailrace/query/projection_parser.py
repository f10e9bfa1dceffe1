"""How ``$project``, ``$addFields`` and ``$unset`` are read into a ``Projection``.

The first field that says so decides whether a ``$project`` includes or excludes;
``_id`` may differ. Dotted names and nested objects mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.query.context import refused
from tailrace.query.expressions import Scope, parse
from tailrace.query.expressions.parser import path_of
from tailrace.query.projection import Projection
from tailrace.query.values import NUMBERS, Value, fields, truthy
from tailrace.raw.elements import BOOL, OBJECT

Path = tuple[bytes, ...]
ID = b"_id"
NO_FIELD = 51272
EMPTY_BELOW = 51270
INCLUDES_AND_EXCLUDES = 31254
EXCLUDES_AND_INCLUDES = 31253
COMPUTED_IN_EXCLUSION = 31252
ADDS_NO_FIELD = 40177
ADDS_EMPTY_BELOW = 40180


def parse_project(argument: Value, scope: Scope) -> Projection:
    """A ``$project``: what is included, excluded or computed."""
    leaves = list(_leaves(argument, (), scope, EMPTY_BELOW))
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
    leaves = list(_leaves(argument, (), scope, ADDS_EMPTY_BELOW))
    if not leaves:
        raise refused(ADDS_NO_FIELD, "specification must have at least one field")
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


def _leaves(argument: Value, above: Path, scope: Scope, empty: int) -> Iterator[tuple[Path, Value]]:
    for name, value in fields(argument):
        path = above + path_of(name)
        if value[0] != OBJECT:
            yield path, value
            continue
        inner = [each for each, _ in fields(value)]
        if not inner:
            raise refused(
                empty,
                f"an empty object is not a valid value. Found empty object at path {dotted(path)}",
            )
        if inner[0].startswith(b"$"):
            yield path, value
        else:
            yield from _leaves(value, path, scope, empty)


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
