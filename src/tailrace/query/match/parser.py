"""From a ``$match`` document to a ``Predicate`` over raw documents.

Two tables: what may stand at the top of a query, and what may be asked of a field.
Refusals carry the server's codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailrace.query.context import not_here, refused
from tailrace.query.expressions import Frame, Scope, parse
from tailrace.query.match.bits import BIT_TESTS, bit_leaf
from tailrace.query.match.kinds import type_leaf
from tailrace.query.match.leaves import (
    BAD_VALUE,
    HOLDS,
    Leaf,
    comparison,
    exists,
    membership,
    modulo,
    same_pattern,
    size,
)
from tailrace.query.paths import Test, any_element
from tailrace.query.regex import pattern_of, pattern_test
from tailrace.query.values import NUMBERS, Value, fields, items, number, truthy
from tailrace.raw import Span, iter_spans
from tailrace.raw.elements import ARRAY, OBJECT, REGEX, UNDEFINED

FAILED_TO_PARSE = 9
TEXT_NOT_FIRST, NEAR_IN_MATCH = 17313, 5626500
DB_REF_NAMES = frozenset((b"$ref", b"$id", b"$db"))

Predicate = Callable[[bytes], bool]
"""Whether a document is what a query wants."""
Path = tuple[bytes, ...]
ALONE: Path = (b"v",)
"""Where an element of an ``$elemMatch`` is put that is asked by itself: not gone into."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What is asked of a field: a predicate over documents, and a test of one element."""

    predicate: Callable[[bytes, int], bool]
    element: Test


def parse_match(query: Value, scope: Scope) -> Predicate:
    """The predicate of a whole query."""
    found = _document(query, scope)
    return lambda raw: found(raw, 0)


At = Callable[[bytes, int], bool]
"""Whether the document at a place in a buffer is what a query wants."""


def _document(query: Value, scope: Scope) -> At:
    parts = [part for name, value in fields(query) for part in _clause(name, value, scope)]
    return _every(parts)


def _every(parts: Sequence[At]) -> At:
    if not parts:
        return lambda buffer, start: True
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        first, second = parts
        return lambda buffer, start: first(buffer, start) and second(buffer, start)
    return lambda buffer, start: all(part(buffer, start) for part in parts)


def _clause(name: bytes, value: Value, scope: Scope) -> list[At]:
    if name.startswith(b"$"):
        word = name.decode(errors="replace")
        reader = TOP.get(word)
        if reader is None:
            raise refused(BAD_VALUE, f"unknown top level operator: {word}")
        made = reader(word, value, scope)
        return [] if made is None else [made]
    path = tuple(name.split(b"."))
    if value[0] == REGEX:
        return [_at(path, Leaf(pattern_test(pattern_of(value))))]
    if value[0] == OBJECT and _asks(value):
        return [_at_all(path, value, scope)]
    return [_at(path, Leaf(comparison("$eq", value)))]


def _asks(value: Value) -> bool:
    """Whether an object holds operators: it begins with one, and is no DBRef."""
    names = [name for name, _ in fields(value)]
    if not names or not names[0].startswith(b"$"):
        return False
    return names[0] not in DB_REF_NAMES


def _at(path: Path, leaf: Leaf) -> At:
    test, into_leaf = leaf.test, leaf.into_leaf and path is not ALONE
    return lambda buffer, start: any_element(buffer, start, path, test, into_leaf=into_leaf)


def _at_all(path: Path, value: Value, scope: Scope) -> At:
    return _every(_asked(path, value, scope))


def _asked(path: Path, value: Value, scope: Scope) -> list[At]:
    """Each operator of one field's object, as a predicate of its own."""
    found = dict(fields(value))
    parts = []
    for name, argument in fields(value):
        word = name.decode(errors="replace")
        reader = FIELD.get(word)
        if reader is None:
            raise refused(BAD_VALUE, f"unknown operator: {word}")
        made = reader(path, word, argument, found, scope)
        if made is not None:
            parts.append(made)
    return parts


def leaf_of(word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> Leaf | None:
    """The element test of a field operator; None for one that asks nothing."""
    reader = LEAVES.get(word)
    if reader is None:
        raise refused(BAD_VALUE, f"unknown operator: {word}")
    return reader(word, argument, found, scope)


LeafReader = Callable[[str, Value, dict[bytes, Value], Scope], "Leaf | None"]


def _comparison(word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> Leaf:
    if argument[0] == REGEX and word == "$eq":
        return Leaf(same_pattern(argument))
    if argument[0] == REGEX:
        raise refused(BAD_VALUE, f"Can't have RegEx as arg to predicate over field: {word}")
    return Leaf(comparison(word, argument))


def _in(word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> Leaf:
    if argument[0] != ARRAY:
        raise refused(BAD_VALUE, f"{word} needs an array")
    values, patterns = [], []
    for each in items(argument):
        if each[0] == REGEX:
            patterns.append(pattern_test(pattern_of(each)))
        elif each[0] == UNDEFINED:
            raise refused(BAD_VALUE, f"{word} cannot contain undefined")
        elif each[0] == OBJECT and _asks(each):
            raise refused(BAD_VALUE, f"cannot nest $ under {word}")
        else:
            values.append(each)
    return Leaf(membership(values, patterns))


def _regex(word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> Leaf | None:
    if word == "$options":
        if b"$regex" not in found:
            raise refused(BAD_VALUE, "$options needs a $regex")
        return None
    return Leaf(pattern_test(pattern_of(argument, found.get(b"$options"))))


LEAVES: dict[str, LeafReader] = {
    **dict.fromkeys(HOLDS, _comparison),
    "$in": _in,
    "$regex": _regex,
    "$options": _regex,
    "$exists": lambda word, argument, found, scope: Leaf(exists),
    "$type": lambda word, argument, found, scope: type_leaf(argument),
    "$size": lambda word, argument, found, scope: size(argument),
    "$mod": lambda word, argument, found, scope: modulo(argument, scope.context),
    **dict.fromkeys(BIT_TESTS, lambda word, argument, found, scope: bit_leaf(word, argument)),
}
"""Operators that ask something of one element at a time."""

FieldReader = Callable[[Path, str, Value, dict[bytes, Value], Scope], "At | None"]


def _leaf(
    path: Path, word: str, argument: Value, found: dict[bytes, Value], scope: Scope
) -> At | None:
    leaf = leaf_of(word, argument, found, scope)
    if leaf is None:
        return None
    made = _at(path, leaf)
    if word == "$exists" and not truthy(argument):
        return _negated(made)
    return made


def _negated(part: At) -> At:
    return lambda buffer, start: not part(buffer, start)


def _ne(
    path: Path, word: str, argument: Value, found: dict[bytes, Value], scope: Scope
) -> At | None:
    plain = {"$ne": "$eq", "$nin": "$in"}[word]
    if word == "$ne" and argument[0] == REGEX:
        raise refused(BAD_VALUE, "Can't have regex as arg to $ne.")
    made = _leaf(path, plain, argument, found, scope)
    return None if made is None else _negated(made)


def _not(path: Path, word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> At:
    if argument[0] == REGEX:
        return _negated(_at(path, Leaf(pattern_test(pattern_of(argument)))))
    if argument[0] != OBJECT:
        raise refused(BAD_VALUE, "$not needs a regex or a document")
    if not list(fields(argument)):
        raise refused(BAD_VALUE, "$not cannot be empty")
    return _negated(_every(_asked(path, argument, scope)))


def _all(path: Path, word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> At:
    if argument[0] != ARRAY:
        raise refused(BAD_VALUE, "$all needs an array")
    asked = items(argument)
    if not asked:
        return lambda buffer, start: False
    if _is_elem_match(asked[0]):
        return _every([_elem_of_all(path, each, scope) for each in asked])
    parts = []
    for each in asked:
        if each[0] == REGEX:
            parts.append(_at(path, Leaf(pattern_test(pattern_of(each)))))
        elif each[0] == OBJECT and _begins_with_known(each):
            raise refused(BAD_VALUE, "no $ expressions in $all")
        else:
            parts.append(_at(path, Leaf(comparison("$eq", each))))
    return _every(parts)


def _begins_with_known(value: Value) -> bool:
    """Whether an object's first field is an operator that asks something of a field."""
    names = [name.decode(errors="replace") for name, _ in fields(value)]
    return bool(names) and names[0] in FIELD


def _is_elem_match(value: Value) -> bool:
    return value[0] == OBJECT and [name for name, _ in fields(value)][:1] == [b"$elemMatch"]


def _elem_of_all(path: Path, each: Value, scope: Scope) -> At:
    if not _is_elem_match(each):
        raise refused(BAD_VALUE, "$all/$elemMatch has to be consistent")
    found = dict(fields(each))
    if len(found) != 1:
        raise refused(BAD_VALUE, "$all/$elemMatch has to be consistent")
    return _elem_match(path, "$elemMatch", found[b"$elemMatch"], found, scope)


def _elem_match(
    path: Path, word: str, argument: Value, found: dict[bytes, Value], scope: Scope
) -> At:
    if argument[0] != OBJECT:
        raise refused(BAD_VALUE, "$elemMatch needs an Object")
    names = [name.decode(errors="replace") for name, _ in fields(argument)]
    if names and _asks(argument) and names[0] not in ("$and", "$or", "$nor", "$where"):
        each = _element_test(argument, scope)
    else:
        each = _document_test(argument, scope)

    def test(buffer: bytes, span: Span) -> bool:
        return span[0] == ARRAY and any(
            each(buffer, item) for _, item in iter_spans(buffer, span[1])
        )

    return _at(path, Leaf(test, into_leaf=False))


def _document_test(query: Value, scope: Scope) -> Test:
    if any(name in (b"$where", b"$expr", b"$text") for name, _ in fields(query)):
        raise refused(BAD_VALUE, "$elemMatch cannot contain $where, $expr or $text")
    matches = _document(query, scope)
    return lambda buffer, span: span[0] in (OBJECT, ARRAY) and matches(buffer, span[1])


def _element_test(query: Value, scope: Scope) -> Test:
    """The operators of an ``$elemMatch`` over plain values, asked of one element itself."""
    found = dict(fields(query))
    tests: list[Test] = []
    for name, argument in fields(query):
        tests += _tests_of(name.decode(errors="replace"), argument, found, scope)
    return lambda buffer, span: all(test(buffer, span) for test in tests)


def _tests_of(word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> list[Test]:
    if word not in FIELD:
        raise refused(BAD_VALUE, f"unknown operator: {word}")
    made = FIELD[word](ALONE, word, argument, found, scope)
    if made is None:
        return []
    ask = made

    def test(buffer: bytes, span: Span) -> bool:
        return ask(*_alone(buffer, span))

    return [test]


def _alone(buffer: bytes, span: Span) -> tuple[bytes, int]:
    raw = buffer[span[1] : span[2]]
    body = b"%cv\0%b" % (span[0], raw)
    return b"%b%b\0" % ((len(body) + 5).to_bytes(4, "little"), body), 0


def _beyond(path: Path, word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> At:
    raise not_here(word, "it needs the server's geometry or text search")


def _near(path: Path, word: str, argument: Value, found: dict[bytes, Value], scope: Scope) -> At:
    raise refused(NEAR_IN_MATCH, f"{word} is not allowed in this context")


FIELD: dict[str, FieldReader] = {
    **dict.fromkeys(LEAVES, _leaf),
    "$ne": _ne,
    "$nin": _ne,
    "$not": _not,
    "$all": _all,
    "$elemMatch": _elem_match,
    "$geoWithin": _beyond,
    "$within": _beyond,
    "$geoIntersects": _beyond,
    "$near": _near,
    "$nearSphere": _near,
    "$geoNear": _near,
}
"""What may be asked of a field."""

TopReader = Callable[[str, Value, Scope], "At | None"]


def _branches(word: str, argument: Value, scope: Scope) -> list[At]:
    if argument[0] != ARRAY:
        raise refused(BAD_VALUE, f"{word} must be an array")
    asked = items(argument)
    if not asked:
        raise refused(BAD_VALUE, "$and/$or/$nor must be a nonempty array")
    parts = []
    for each in asked:
        if each[0] != OBJECT:
            raise refused(BAD_VALUE, "$or/$and/$nor entries need to be full objects")
        parts.append(_document(each, scope))
    return parts


def _and(word: str, argument: Value, scope: Scope) -> At:
    return _every(_branches(word, argument, scope))


def _or(word: str, argument: Value, scope: Scope) -> At:
    parts = _branches(word, argument, scope)
    return lambda buffer, start: any(part(buffer, start) for part in parts)


def _nor(word: str, argument: Value, scope: Scope) -> At:
    return _negated(_or(word, argument, scope))


def _expr(word: str, argument: Value, scope: Scope) -> At:
    node = parse(argument, scope)

    def test(buffer: bytes, start: int) -> bool:
        raw = buffer if start == 0 else buffer[start:]
        return truthy(node.run(Frame(raw, {})))

    return test


def _always(holds: bool) -> TopReader:
    def read(word: str, argument: Value, scope: Scope) -> At:
        if argument[0] not in NUMBERS or number(argument) != 1:
            raise refused(FAILED_TO_PARSE, f"{word} must be an integer value of 1")
        return lambda buffer, start: holds

    return read


def _comment(word: str, argument: Value, scope: Scope) -> None:
    return None


def _where(word: str, argument: Value, scope: Scope) -> At:
    raise refused(BAD_VALUE, f"{word} is not allowed in this context")


def _text(word: str, argument: Value, scope: Scope) -> At:
    raise refused(TEXT_NOT_FIRST, f"{word} is only allowed as the first pipeline stage")


def _schema(word: str, argument: Value, scope: Scope) -> At:
    raise not_here(word, "it is left to the server")


TOP: dict[str, TopReader] = {
    "$and": _and,
    "$or": _or,
    "$nor": _nor,
    "$expr": _expr,
    "$comment": _comment,
    "$alwaysTrue": _always(True),
    "$alwaysFalse": _always(False),
    "$where": _where,
    "$text": _text,
    "$sampleRate": _schema,
    "$jsonSchema": _schema,
}
"""What may stand at the top of a query, beside fields."""
