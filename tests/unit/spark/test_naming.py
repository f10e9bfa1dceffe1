"""Table names: safe everywhere, unlike each other, and the same each time."""

from __future__ import annotations

import re

import pytest

from tailrace.spark.apply.naming import table_name

SAFE = re.compile(r"[A-Za-z0-9~-][A-Za-z0-9_.~-]*\Z")


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("shop.orders", "shop.orders"),
        ("shop.orders.2024", "shop.orders.2024"),
        ("shop.a b/c", "shop.a~20b~2fc"),
        ("_own.x", "~5fown.x"),
        ("shop.näme", "shop.n~c3~a4me"),
        ("shop.$x~", "shop.~24x~7e"),
    ],
)
def test_a_namespace_keeps_what_every_file_system_takes(namespace: str, name: str) -> None:
    assert table_name(namespace, ()) == name
    assert SAFE.match(name)


def test_names_that_differ_in_case_alone_get_a_number() -> None:
    first = table_name("shop.Orders", ())
    second = table_name("shop.orders", [first])
    assert [first, second, table_name("shop.ORDERS", [first, second])] == [
        "shop.Orders",
        "shop.orders~~2",
        "shop.ORDERS~~3",
    ]


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = (table_name("shop." + "ä" * 200 + end, ()) for end in "ab")
    assert one != other
    assert max(len(one), len(other)) <= 200
