"""Rules about imports: which way they point, where they stand, what they bring in.

Each rule takes one source and gives complaints; ``cycles`` takes them all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.house.rooms import (
    CLOCK_READERS,
    ENVIRONMENT_READERS,
    MUST_NOT_KNOW,
    NOT_PURE,
    ONLY_IN,
    ORDER,
    is_pure,
)
from tests.house.sources import PACKAGE, Source, imported, room_of

PLACE = {room: number for number, room in enumerate(ORDER)}


def known_room(source: Source) -> Iterator[str]:
    """Every module lies in a room of the list."""
    if source.room and source.room not in PLACE:
        yield f"{source.room}/ is in no list of rooms: see tests/house/rooms.py"


def points_down(source: Source) -> Iterator[str]:
    """A module imports its own room and the rooms below it."""
    for name, _ in source.imports:
        if name.startswith("."):
            yield f"imports {name}: write the whole name"
        elif name == PACKAGE and source.room != "cli":
            yield f"imports {PACKAGE} itself: name the room"
        target = room_of(name)
        if not (source.room and target) or target == source.room:
            continue
        if PLACE.get(target, -1) < PLACE.get(source.room, 0):
            yield f"imports {name}, from a room above"
        if target in MUST_NOT_KNOW.get(source.room, ()):
            yield f"imports {name}: {source.room}/ must not know {target}/"


def inside_functions(source: Source) -> Iterator[str]:
    """No import stands inside a function, but where Spark executors need it."""
    for function in source.functions:
        for name, node in imported(function):
            if source.room == "spark" and "executor" in source.line(node):
                continue
            yield f"{function.name} imports {name} inside"


def pure(source: Source) -> Iterator[str]:
    """A pure module brings in no socket, clock, thread, file or randomness."""
    if not is_pure(source.module):
        return
    for name, _ in source.imports:
        if name.partition(".")[0] in NOT_PURE:
            yield f"imports {name}, but is pure"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in ("open", "input", "print"):
                yield f"calls {called.id}, but is pure"
            if isinstance(called, ast.Attribute) and called.attr in CLOCK_READERS:
                yield f"calls {called.attr}, but is pure"


def foreign(source: Source) -> Iterator[str]:
    """Some packages are one room's business only."""
    for name, _ in source.imports:
        rooms = ONLY_IN.get(name.partition(".")[0])
        if rooms is not None and source.room not in rooms:
            yield f"imports {name}: for {' and '.join(rooms) or 'nobody'} only"


def surroundings(source: Source) -> Iterator[str]:
    """Only the command line and the servers for tests read argv and environment."""
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        read = f"{node.value.id}.{node.attr}"
        if read in ("os.environ", "os.getenv") and source.room not in ENVIRONMENT_READERS:
            yield f"reads {read}"
        if read == "sys.argv" and source.room != "cli" and not _is_program(source):
            yield "reads sys.argv"


def _is_program(source: Source) -> bool:
    """Whether a module is also run by itself, as a process of its own."""
    return '__name__ == "__main__"' in source.text


def cycles(sources: Sequence[Source]) -> Iterator[str]:
    """Modules that import each other, directly or around several corners."""
    modules = {source.module for source in sources}
    edges = {source.module: set(_targets(source, modules)) for source in sources}
    done: set[str] = set()
    for start in sorted(edges):
        yield from _walk(start, edges, done, [])


def _targets(source: Source, modules: set[str]) -> Iterator[str]:
    for name, node in source.imports:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{name}.{alias.name}"
                yield whole if whole in modules else name
        else:
            yield name


def _walk(
    module: str, edges: dict[str, set[str]], done: set[str], path: list[str]
) -> Iterator[str]:
    if module in path:
        yield " -> ".join([*path[path.index(module) :], module])
        return
    if module in done:
        return
    for target in sorted(edges.get(module, ())):
        yield from _walk(target, edges, done, [*path, module])
    done.add(module)
