"""Which table shows which namespace, through drops and renames."""

from __future__ import annotations

from itertools import pairwise

from tailrace.spark.apply.mapping import Ddl, Routes, route

TABLES = {"shop.a": "shop.a", "shop.b": "shop.b"}


def routed(*steps: list[str] | Ddl, known_until: int = 0) -> Routes:
    stretches: list[list[str]] = [[]]
    ddl = []
    for step in steps:
        if isinstance(step, Ddl):
            ddl.append(step)
            stretches.append([])
        else:
            stretches[-1] = step
    return route(TABLES, TABLES.values(), stretches, ddl, known_until)


def test_a_drop_empties_the_table_and_keeps_its_name() -> None:
    routes = routed(["shop.a"], Ddl("drop", "shop", "a", 5), ["shop.a"])
    assert routes.of == {(0, "shop.a"): "shop.a", (1, "shop.a"): "shop.a"}
    assert routes.last_emptied("shop.a", 4) == 0
    assert routes.last_emptied("shop.a", 5) is None, "the table shows it already"


def test_a_rename_takes_the_table_along_and_empties_its_targets() -> None:
    routes = routed(["shop.a"], Ddl("rename", "shop", "a", 5, "shop.b"), ["shop.b", "shop.a"])
    assert routes.of[1, "shop.b"] == "shop.a"
    assert routes.of[1, "shop.a"] == "shop.a~~2"
    assert routes.tables == {"shop.b": "shop.a", "shop.a": "shop.a~~2"}
    assert routes.last_emptied("shop.b", 0) == 0
    assert routes.last_emptied("shop.a", 0) is None


def test_dropping_a_database_drops_its_collections_only() -> None:
    routes = routed(Ddl("dropDatabase", "shop", None, 5))
    assert sorted(routes.emptied) == ["shop.a", "shop.b"]
    assert not routed(Ddl("dropDatabase", "sho", None, 5)).emptied


def test_a_rename_out_of_what_is_followed_is_a_drop() -> None:
    routes = routed(Ddl("rename", "shop", "a", 5, None))
    assert routes.tables == TABLES
    assert list(routes.emptied) == ["shop.a"]


def test_a_rename_into_what_is_followed_leaves_a_table_that_was_not_read() -> None:
    routes = routed(Ddl("rename", "other", "x", 5, "shop.x", known=False), ["shop.x"])
    assert routes.unread == {"shop.x"}


def test_a_collection_that_was_made_capped_was_not_read_until_it_is_emptied() -> None:
    made = Ddl("rename", "shop", "tmpxCjxH.convertToCapped.a", 5, "shop.a")
    routes = routed(made, ["shop.a"])
    assert routes.unread == {"shop.a"}
    assert routes.last_emptied("shop.a", 4) == 0, "by the copy that took its place"
    assert not routed(made, Ddl("drop", "shop", "a", 6), ["shop.a"]).unread


def test_what_is_known_already_changes_nothing() -> None:
    routes = routed(Ddl("rename", "shop", "a", 5, "shop.c"), ["shop.c"], known_until=5)
    assert routes.tables == {**TABLES, "shop.c": "shop.c"}


def test_the_same_events_give_the_same_names_however_they_are_cut() -> None:
    ddl = [
        Ddl("rename", "shop", "a", 1, "shop.c"),
        Ddl("drop", "shop", "b", 2),
        Ddl("rename", "shop", "a", 3, "shop.b"),
    ]
    written = [["shop.a"], ["shop.a", "shop.c"], ["shop.b"], ["shop.A", "shop.a", "shop.b"]]
    whole = route(TABLES, TABLES.values(), written, ddl, 0)
    tables, taken = dict(TABLES), set(TABLES.values())
    for at, (_, _) in enumerate(pairwise([*ddl, None])):
        part = route(tables, taken, [written[at], []], [ddl[at]], 0)
        tables, taken = part.tables, part.taken
    last = route(tables, taken, [written[-1]], [], 0)
    assert last.tables == whole.tables
