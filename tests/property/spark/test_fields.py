"""Hidden fields stay hidden through updates: rules and diffs agree, byte for byte."""

from __future__ import annotations

from typing import Any

import bson
import pytest
from tests.support.recordings import load, scenarios

from tailrace.errors import OptionError
from tailrace.oplog.deltas import apply_delta
from tailrace.oplog.entry import Entry
from tailrace.raw import spans
from tailrace.spark.fields import FieldRules
from tailrace.token.keystring import encode_value

RULES = (
    FieldRules(drop=("a",), hash=("b",)),
    FieldRules(drop=("deep.a", "tags"), hash=("count", "c")),
    FieldRules(hash=("deep", "tags", "a"), salt="s"),
    FieldRules(drop=("arr.x", "o.p"), hash=("arr", "o", "n")),
)


def updates(version: str, scenario: str) -> list[tuple[bytes, bytes]]:
    """Documents before an update, and the update, as the recording's log gives them."""
    rebuilt: dict[Any, bytes] = {}
    found = []
    for raw in load(version, scenario).documents("oplog.bson"):
        entry = Entry(raw)
        if entry.op not in (b"i", b"u", b"d") or entry.o is None:
            continue
        kind, start, end = spans(entry.o2 or entry.o)[b"_id"]
        place = entry.namespace, encode_value(kind, (entry.o2 or entry.o)[start:end])[0]
        if entry.op == b"i" or b"_id" in spans(entry.o):
            rebuilt[place] = entry.o
        elif entry.op == b"u" and place in rebuilt:
            found.append((rebuilt[place], entry.o))
            rebuilt[place] = apply_delta(rebuilt[place], entry.o)
    return found


UPDATES = [
    update
    for scenario in scenarios()
    if scenario[1] in ("crud", "deltas")
    for update in updates(*scenario)
]


@pytest.mark.parametrize("rules", RULES, ids=range(len(RULES)))
def test_a_hidden_diff_on_a_hidden_document_gives_the_hidden_result(rules: FieldRules) -> None:
    found = UPDATES
    assert len(found) > 20
    for before, delta in found:
        whole = rules.document(apply_delta(before, delta))
        assert apply_delta(rules.document(before), rules.delta(delta)) == whole, bson.decode(delta)


def test_dropped_and_hashed_values_are_in_neither_diff_nor_description() -> None:
    rules = FieldRules(drop=("card.number",), hash=("mail",), salt="pepper")
    document = bson.encode({"_id": 1, "mail": "x@y.z", "card": {"number": "4000", "until": "12"}})
    shown = bson.decode(rules.document(document))
    assert shown["card"] == {"until": "12"}
    assert len(shown["mail"]) == 64
    assert shown["mail"] != bson.decode(FieldRules(hash=("mail",)).document(document))["mail"]
    delta = {"$v": 2, "diff": {"u": {"mail": "new@y.z"}, "scard": {"u": {"number": "5000"}}}}
    description = {"updatedFields": {"mail": "new@y.z", "card.number": "5000"}, "removedFields": []}
    for hidden in (rules.delta(bson.encode(delta)), rules.description(bson.encode(description))):
        assert b"new@y.z" not in hidden
        assert b"5000" not in hidden


@pytest.mark.parametrize("path", ["_id", "_id.part", "", "a..b"])
def test_a_path_that_cannot_be_hidden_is_refused(path: str) -> None:
    with pytest.raises(OptionError):
        FieldRules(drop=(path,))
