"""The repository's Python files, read and parsed once, as the rules of the house see them.

A ``Source`` knows its text, its tree, and, below ``src/``, the module and the room
that it is. Rules take sources and give complaints; nothing here decides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "tailrace"
FOLDERS = ("src", "tests", "scripts", "benchmarks")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text, self.path)

    @cached_property
    def module(self) -> str:
        """The dotted name below ``src/``, an ``__init__`` by its package's; else the path."""
        parts = Path(self.path).with_suffix("").parts
        if parts[0] != "src":
            return self.path
        return ".".join(part for part in parts[1:] if part != "__init__")

    @property
    def room(self) -> str:
        """The first name below the package; empty for the package itself."""
        return room_of(self.module)

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, nested ones too."""
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def imports(self) -> list[tuple[str, ast.stmt]]:
        """Every imported module, wherever the import stands, with the statement."""
        return list(imported(self.tree))

    def line(self, node: ast.stmt | ast.expr) -> str:
        """The text of the line on which a node begins."""
        return self.text.splitlines()[node.lineno - 1]


def room_of(module: str) -> str:
    """The room of a dotted name of the package; empty for the package itself."""
    return module.split(".")[1] if module.startswith(PACKAGE + ".") else ""


def imported(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """The modules that a piece of code names in imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), node


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of the repository's own folders."""
    paths = (path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))
    return tuple(
        Source(path.relative_to(REPOSITORY).as_posix(), path.read_text("utf-8"))
        for path in sorted(paths)
    )


def below(folder: str) -> tuple[Source, ...]:
    """The sources of one folder."""
    return tuple(source for source in sources() if source.path.startswith(folder + "/"))
