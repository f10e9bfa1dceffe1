"""Rules about sizes and names: files, functions, modules, module docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import Source

MOST_FILE_LINES = 500
MOST_FUNCTION_LINES = 60
DOCSTRING_LINES = range(3, 13)
SMALL_FILE_LINES = 40
"""A file up to here may open with less: one sentence says it all."""
MODULE_OF_A_ROOM = 2
"""Dots in the name of a module that lies in a room, not in a package of it."""
DRAWN = "├──"
"""A docstring with a drawing may be longer."""
VAGUE_NAMES = frozenset({"util", "utils", "common", "helper", "helpers", "manager", "misc"})


def file_size(source: Source) -> Iterator[str]:
    """A file has at most 500 lines, unless its first line says that it is generated."""
    lines = source.text.splitlines()
    if len(lines) > MOST_FILE_LINES and "generated" not in lines[0].lower():
        yield f"has {len(lines)} lines, {MOST_FILE_LINES} are the most"


def function_size(source: Source) -> Iterator[str]:
    """A function has at most 60 lines."""
    for function in source.functions:
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > MOST_FUNCTION_LINES:
            yield f"{function.name} has {lines} lines, {MOST_FUNCTION_LINES} are the most"


def opening(source: Source) -> Iterator[str]:
    """A module opens with 3 to 12 lines; a small one, or one in a package of a room, with one."""
    lines = len((ast.get_docstring(source.tree) or "").splitlines())
    if not lines and source.text.strip():
        yield "opens without a docstring"
    elif not source.path.startswith("src/"):
        return
    elif lines < min(DOCSTRING_LINES) and not _told_elsewhere(source):
        yield f"opens with {lines} lines, {min(DOCSTRING_LINES)} are the fewest"
    elif lines > max(DOCSTRING_LINES) and DRAWN not in source.text:
        yield f"opens with {lines} lines, {max(DOCSTRING_LINES)} are the most"


def names(source: Source) -> Iterator[str]:
    """No module is called by a word that says nothing."""
    name = source.module.replace("/", ".").removesuffix(".py").split(".")
    yield from (f"is called {word}" for word in name if word in VAGUE_NAMES)


def _told_elsewhere(source: Source) -> bool:
    """Whether little is left to say: a small file, or its package has said the rest."""
    is_small = len(source.text.splitlines()) <= SMALL_FILE_LINES
    return is_small or source.module.count(".") > MODULE_OF_A_ROOM
