"""Rules about what others see: every public item says what it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.sources import Function, Source

Definition = Function | ast.ClassDef


def documented(source: Source) -> Iterator[str]:
    """A public class, function or method has a docstring that says more than its name."""
    for name, node in _public(source.tree, ""):
        said = ast.get_docstring(node)
        if not said:
            yield f"{name} has no docstring"
        elif _words(said) == _words(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)):
            yield f"the docstring of {name} repeats its name"


def listed(source: Source) -> Iterator[str]:
    """What a room's ``__init__`` brings in for others stands in its ``__all__``."""
    if source.module.count(".") > 1 or not source.path.endswith("/__init__.py"):
        return
    brought = {
        alias.asname or alias.name
        for node in source.tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    if brought - set(exported(source.tree)):
        yield f"does not list {', '.join(sorted(brought - set(exported(source.tree))))}"


def exported(tree: ast.Module) -> list[str]:
    """The names in a module's ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _public(node: ast.Module | ast.ClassDef, within: str) -> Iterator[tuple[str, Definition]]:
    for child in node.body:
        if isinstance(child, Definition) and not child.name.startswith("_"):
            if not _repeats(child):
                yield within + child.name, child
            if isinstance(child, ast.ClassDef):
                yield from _public(child, f"{within}{child.name}.")


def _repeats(node: Definition) -> bool:
    """Whether a definition only adds to one that is documented: an overload, a setter."""
    names = (ast.unparse(each).rpartition(".")[2] for each in node.decorator_list)
    return not {"overload", "setter", "override"}.isdisjoint(names)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
