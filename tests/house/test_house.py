"""The rules of the house hold everywhere, and each of them can find what it looks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.house import import_rules, public_rules, size_rules, trial_rules
from tests.house.sources import REPOSITORY, Source, below, sources

Rule = Callable[[Source], Iterator[str]]

EVERYWHERE = (
    size_rules.file_size,
    size_rules.function_size,
    size_rules.names,
    size_rules.opening,
)
IN_THE_PACKAGE = (
    import_rules.known_room,
    import_rules.points_down,
    import_rules.inside_functions,
    import_rules.pure,
    import_rules.foreign,
    import_rules.surroundings,
    public_rules.documented,
    public_rules.listed,
)
IN_TESTS = (
    trial_rules.skips_say_why,
    trial_rules.waits_have_deadlines,
    trial_rules.claims,
)
RULES: tuple[tuple[Rule, str], ...] = (
    *((rule, "") for rule in EVERYWHERE),
    *((rule, "src") for rule in IN_THE_PACKAGE),
    *((rule, "tests") for rule in IN_TESTS),
)
"""Each rule, and the folder in which it holds (empty: all of them)."""

STAGE = "src/tailrace/stage/some.py"
SPARK = "src/tailrace/spark/some.py"
TEST = "tests/unit/test_some.py"
OPENING = '"""A module."""\n'

BROKEN: tuple[tuple[Rule, str, str], ...] = (
    (size_rules.file_size, STAGE, OPENING + "a = 1\n" * 500),
    (size_rules.function_size, STAGE, "def f():\n" + "    a = 1\n" * 60),
    (size_rules.names, "src/tailrace/stage/utils.py", OPENING),
    (size_rules.names, "tests/helpers/some.py", OPENING),
    (size_rules.opening, STAGE, "a = 1\n"),
    (size_rules.opening, STAGE, OPENING + "a = 1\n" * 40),
    (size_rules.opening, STAGE, '"""A.\n' + "b\n" * 12 + '"""\n'),
    (import_rules.known_room, "src/tailrace/attic/some.py", ""),
    (import_rules.points_down, STAGE, "from tailrace.engine import replay"),
    (import_rules.points_down, STAGE, "import tailrace.driver.watch"),
    (import_rules.points_down, STAGE, "from tailrace import replay"),
    (import_rules.points_down, STAGE, "from .match import OplogMatch"),
    (import_rules.points_down, "src/tailrace/router/merge.py", "from tailrace.stage import x"),
    (import_rules.inside_functions, STAGE, "def f():\n    import json"),
    (import_rules.inside_functions, SPARK, "def f():\n    import json"),
    (import_rules.pure, STAGE, "import time"),
    (import_rules.pure, STAGE, "from pymongo.errors import PyMongoError"),
    (import_rules.pure, STAGE, "datetime.now(utc)"),
    (import_rules.pure, STAGE, "open('x')"),
    (import_rules.pure, "src/tailrace/oplog/entry.py", "import random"),
    (import_rules.pure, "src/tailrace/driver/machine/rules.py", "import threading"),
    (import_rules.pure, "src/tailrace/postgres/pgoutput.py", "import socket"),
    (import_rules.foreign, STAGE, "from pyspark.sql import SparkSession"),
    (import_rules.foreign, "src/tailrace/driver/some.py", "import rich"),
    (import_rules.surroundings, STAGE, "import os\nos.environ['A']"),
    (import_rules.surroundings, STAGE, "import sys\nsys.argv"),
    (public_rules.documented, STAGE, "def f(): pass"),
    (public_rules.documented, STAGE, 'class A:\n    """B."""\n    def f(self): pass'),
    (public_rules.documented, STAGE, 'class OpenDoor:\n    """Open door."""'),
    (public_rules.listed, "src/tailrace/stage/__init__.py", "from tailrace.raw import spans"),
    (trial_rules.skips_say_why, TEST, "@pytest.mark.skip\ndef test_a(): pass"),
    (trial_rules.skips_say_why, TEST, "@pytest.mark.skip()\ndef test_a(): pass"),
    (trial_rules.skips_say_why, TEST, "@pytest.mark.skipif(True)\ndef test_a(): pass"),
    (trial_rules.skips_say_why, TEST, "@pytest.mark.xfail(strict=True)\ndef test_a(): pass"),
    (trial_rules.skips_say_why, TEST, "def test_a():\n    pytest.skip()"),
    (trial_rules.skips_say_why, TEST, "def test_a():\n    pytest.skip('')"),
    (trial_rules.skips_say_why, TEST, "pyspark = pytest.importorskip('pyspark')"),
    (trial_rules.waits_have_deadlines, TEST, "def test_a():\n    time.sleep(1)"),
    (trial_rules.waits_have_deadlines, TEST, "def f():\n    while not a():\n        sleep(1)"),
    (trial_rules.claims, TEST, "def test_it(): pass"),
    (trial_rules.claims, TEST, "a = 1"),
)
"""A piece of code for each thing that a rule must find."""


def name_of(rule: Rule) -> str:
    return rule.__name__


@pytest.mark.parametrize(("rule", "folder"), RULES, ids=[name_of(rule) for rule, _ in RULES])
def test_every_source_keeps_the_rule(rule: Rule, folder: str) -> None:
    looked_at = below(folder) if folder else sources()
    assert looked_at
    complaints = [f"{each.path}: {said}" for each in looked_at for said in rule(each)]
    assert not complaints, "\n".join([(rule.__doc__ or "").strip(), *complaints])


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_rule_finds_what_breaks_it(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text)))


def test_every_rule_is_known_to_find_something() -> None:
    assert {rule for rule, _ in RULES} == {rule for rule, _, _ in BROKEN}


def test_no_modules_import_each_other() -> None:
    assert not list(import_rules.cycles(below("src")))


def test_a_cycle_around_a_corner_is_found() -> None:
    ring = (
        Source("src/tailrace/stage/a.py", "from tailrace.stage import b"),
        Source("src/tailrace/stage/b.py", "from tailrace.stage.c import x"),
        Source("src/tailrace/stage/c.py", "import tailrace.stage.a"),
    )
    assert list(import_rules.cycles(ring))


def test_a_wait_with_a_condition_and_a_deadline_is_no_bare_sleep() -> None:
    text = "def f(deadline):\n    while monotonic() < deadline:\n        sleep(0.1)"
    assert not list(trial_rules.waits_have_deadlines(Source(TEST, text)))


def test_the_package_exports_what_is_written_down() -> None:
    written = (REPOSITORY / "tests/house/exported_names.txt").read_text("utf-8").split()
    root = Source("", (REPOSITORY / "src/tailrace/__init__.py").read_text("utf-8"))
    assert public_rules.exported(root.tree) == written
    assert len(written) <= 30
