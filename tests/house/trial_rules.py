"""Rules about the tests themselves: what they leave out, and how they wait."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import Source

EXPLAINED = ("skip", "skipif", "xfail", "fail", "importorskip")
MARKS = ("skip", "skipif", "xfail")
SLEEPS = ("time.sleep", "asyncio.sleep", "sleep")
LOOPS = (ast.While, ast.For, ast.AsyncFor)


def skips_say_why(source: Source) -> Iterator[str]:
    """A test that is left out says why, where it is left out."""
    called = {id(node.func) for node in ast.walk(source.tree) if isinstance(node, ast.Call)}
    for node in ast.walk(source.tree):
        bare = _is_mark(node) and id(node) not in called
        empty = isinstance(node, ast.Call) and _is_pytest(node.func) and not _says_why(node)
        if bare or empty:
            yield f"{ast.unparse(node)} gives no reason"


def waits_have_deadlines(source: Source) -> Iterator[str]:
    """A test sleeps only while it waits for a condition, up to a deadline."""
    for function in source.functions:
        text = ast.unparse(function)
        bounded = "deadline" in text or "monotonic" in text
        looped = {
            id(call)
            for loop in ast.walk(function)
            if isinstance(loop, LOOPS)
            for call in ast.walk(loop)
        }
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in SLEEPS:
                waits = bounded and id(call) in looped
                if not waits and not _yields_only(call):
                    yield f"{function.name} sleeps without a condition and a deadline"


def claims(source: Source) -> Iterator[str]:
    """A test's name says what holds, in several words; a test file holds tests."""
    if not source.path.rpartition("/")[2].startswith("test_"):
        return
    tests = [function.name for function in source.functions if function.name.startswith("test_")]
    if not tests:
        yield "holds no test"
    yield from (f"{name} claims nothing" for name in tests if name.count("_") < 3)


def _is_pytest(called: ast.expr) -> bool:
    name = ast.unparse(called)
    base, _, last = name.rpartition(".")
    return last in EXPLAINED and base in ("pytest", "pytest.mark", "unittest")


def _is_mark(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in MARKS
        and ast.unparse(node.value).endswith("pytest.mark")
    )


def _says_why(call: ast.Call) -> bool:
    reasons = [word.value for word in call.keywords if word.arg in ("reason", "msg")]
    last = ast.unparse(call.func).rpartition(".")[2]
    direct = last in ("skip", "fail") or (last == "xfail" and "mark" not in ast.unparse(call.func))
    reasons += call.args[:1] if direct else []
    return any(not (isinstance(why, ast.Constant) and not why.value) for why in reasons)


def _yields_only(call: ast.Call) -> bool:
    """``asyncio.sleep(0)`` does not wait; it lets others run."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
