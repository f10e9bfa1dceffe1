"""``$type``: the names and numbers of types, and which elements they mean."""

from __future__ import annotations

from tailrace.query.context import refused
from tailrace.query.match.leaves import BAD_VALUE, Leaf, is_nan
from tailrace.query.type_names import NAMES
from tailrace.query.values import NUMBERS, Value, items, number, text
from tailrace.raw import Span
from tailrace.raw.elements import ARRAY, MIN_KEY, STRING

NUMBER_OF_MIN_KEY = -1


def type_leaf(argument: Value) -> Leaf:
    """The test of ``$type``: one type, or any of an array of them."""
    asked = items(argument) if argument[0] == ARRAY else [argument]
    if not asked:
        raise refused(9, " must match at least one type")
    wanted = frozenset(kind for each in asked for kind in type_bytes(each))

    def test(buffer: bytes, span: Span) -> bool:
        return span[0] in wanted

    return Leaf(test)


def type_bytes(value: Value) -> frozenset[int]:
    """The type bytes that a name or a number means."""
    if value[0] == STRING:
        name = text(value)
        if name == "number":
            return NUMBERS
        if name not in NAMES:
            raise refused(BAD_VALUE, f"Unknown type name alias: {name}")
        return frozenset((NAMES[name],))
    if value[0] not in NUMBERS:
        raise refused(14, "type must be represented as a number or a string")
    amount = number(value)
    if is_nan(value) or amount != int(amount):
        raise refused(BAD_VALUE, f"Invalid numerical type code: {amount}")
    code = MIN_KEY if amount == NUMBER_OF_MIN_KEY else int(amount)
    if code not in NAMES.values() or amount == MIN_KEY:
        raise refused(BAD_VALUE, f"Invalid numerical type code: {amount}")
    return frozenset((code,))
