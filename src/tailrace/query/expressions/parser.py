"""From an expression's BSON to a ``Node``: paths, variables, literals, operators.

An operator is one entry of a table: from its name to how it is read. Refusals carry
the server's codes. Bounded by the nesting that the pipeline's reader allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tailrace.errors import ServerError
from tailrace.query.context import Context, Version, not_here, refused
from tailrace.query.expressions.node import (
    ABSENT_NODE,
    ROOT_NODE,
    Frame,
    Node,
    Run,
    constant,
    folded,
)
from tailrace.query.paths import field_value
from tailrace.query.values import (
    MISSING,
    NULL_VALUE,
    Value,
    array,
    document,
    fields,
    items,
    text_bytes,
)
from tailrace.raw.elements import ARRAY, OBJECT, STRING

INVALID_OPERATOR = 168
ONE_FIELD_ONLY = 15983
MAX_PATH_PARTS = 200
FAILED_TO_PARSE = 9
NAME_BYTES = frozenset(b"_0123456789" + bytes(range(65, 91)) + bytes(range(97, 123)))
OLDEST: Version = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known where an expression stands: the stream's context and the names in scope."""

    context: Context
    names: frozenset[bytes] = frozenset()
    current: bool = False
    """Whether ``$$CURRENT`` was given another meaning than the document."""
    places: bool = False
    """Whether the document is still a change event, whose fields have their places."""

    def inside(self, *names: bytes) -> Scope:
        """The scope of an expression that sees more variables."""
        return replace(
            self, names=self.names.union(names), current=self.current or b"CURRENT" in names
        )


Reader = Callable[[str, Value, Scope], Node]
"""From an operator's name, its argument and the scope to the compiled operator."""


@dataclass(frozen=True, slots=True)
class Operator:
    """How an operator is read, and since which release it exists."""

    read: Reader
    since: Version = OLDEST
    note: str = ""
    """What of it is not evaluated here, for the reference."""


OPERATORS: dict[str, Operator] = {}
"""Every operator of the expression language, by name; the modules beside this one fill it."""


SERVERS_VARIABLES = frozenset(
    (b"NOW", b"CLUSTER_TIME", b"JS_SCOPE", b"IS_MR", b"SEARCH_META", b"USER_ROLES")
)
NEVER: Version = (1000, 0, 0)
SERVER_ONLY: dict[str, Version] = {
    "$accumulator": (4, 4, 0),
    "$bitAnd": (6, 3, 0),
    "$bitNot": (6, 3, 0),
    "$bitOr": (6, 3, 0),
    "$bitXor": (6, 3, 0),
    "$dateAdd": (5, 0, 0),
    "$dateDiff": (5, 0, 0),
    "$dateFromString": OLDEST,
    "$dateSubtract": (5, 0, 0),
    "$dateTrunc": (5, 0, 0),
    "$function": (4, 4, 0),
    "$median": (7, 0, 0),
    "$meta": OLDEST,
    "$percentile": (7, 0, 0),
    "$rand": (4, 4, 2),
    "$sampleRate": (4, 4, 2),
    "$toHashedIndexKey": (6, 3, 0),
}
"""Operators that servers know and that are left to them, and since when."""

NAMED_SINCE: Version = (5, 1, 0)
RENUMBERED: dict[str, dict[int, tuple[Version, int]]] = {
    "$add": {16554: ((6, 1, 0), 14)},
    "$subtract": {
        16556: (NAMED_SINCE, 14),
        16613: (NAMED_SINCE, 14),
        159: ((6, 1, 0), 15),
        31109: ((6, 1, 0), 15),
    },
    "$multiply": {16555: (NAMED_SINCE, 14)},
    "$divide": {16608: (NAMED_SINCE, 2), 16609: (NAMED_SINCE, 14)},
}
"""Refusals that got another code, and since when: 6.0.5 and 7.0.28 were asked."""


def parse(value: Value, scope: Scope) -> Node:
    """Any operand: a path, a variable, an operator, an object, an array or a constant."""
    kind = value[0]
    if kind == STRING:
        text = text_bytes(value)
        return parse_path(text, scope) if text.startswith(b"$") else constant(value)
    if kind == OBJECT:
        return parse_object(value, scope)
    if kind == ARRAY:
        return _array(value, scope)
    return constant(value)


def parse_object(value: Value, scope: Scope) -> Node:
    """An object: one operator, or fields that are expressions."""
    found = list(fields(value))
    if found and found[0][0].startswith(b"$"):
        if len(found) != 1:
            raise refused(
                ONE_FIELD_ONLY,
                "an object representing an expression must have exactly one field, "
                f"not {len(found)}",
            )
        return parse_operator(found[0][0].decode(errors="replace"), found[0][1], scope)
    names: set[bytes] = set()
    parts: list[tuple[bytes, Node]] = []
    for name, each in found:
        check_field_name(name)
        if name in names:
            raise refused(16406, f"duplicate field name specified in object literal: {name!r}")
        names.add(name)
        parts.append((name, parse(each, scope)))
    return folded(
        lambda frame: document((name, node.run(frame)) for name, node in parts),
        [node for _, node in parts],
    )


def parse_operator(name: str, argument: Value, scope: Scope) -> Node:
    """One operator applied to its argument."""
    operator = OPERATORS.get(name)
    version = scope.context.version
    if operator is None and version >= SERVER_ONLY.get(name, NEVER):
        raise not_here(name, "it is not known here")
    if operator is None or version < operator.since:
        raise refused(INVALID_OPERATOR, f"Unrecognized expression '{name}'")
    renumbered = {
        old: new for old, (since, new) in RENUMBERED.get(name, {}).items() if version >= since
    }
    if not renumbered:
        return operator.read(name, argument, scope)
    try:
        node = operator.read(name, argument, scope)
    except ServerError as error:
        raise _renumbered(error, renumbered) from error
    return Node(_renumbering(node.run, renumbered), node.constant)


def _renumbering(run: Run, codes: Mapping[int, int]) -> Run:
    def checked(frame: Frame) -> Value:
        try:
            return run(frame)
        except ServerError as error:
            raise _renumbered(error, codes) from error

    return checked


def _renumbered(error: ServerError, codes: Mapping[int, int]) -> ServerError:
    return refused(codes[error.code], error.message) if error.code in codes else error


def is_known(name: str, scope: Scope) -> bool:
    """Whether the release has an operator of this name, here or on the server alone."""
    operator = OPERATORS.get(name)
    since = SERVER_ONLY.get(name, NEVER) if operator is None else operator.since
    return scope.context.version >= since


def operands(argument: Value, scope: Scope) -> list[Node]:
    """The operands of an operator: the elements of an array, or the argument alone."""
    if argument[0] == ARRAY:
        return [parse(each, scope) for each in items(argument)]
    return [parse(argument, scope)]


def _array(value: Value, scope: Scope) -> Node:
    parts = [parse(each, scope) for each in items(value)]

    def run(frame: Frame) -> Value:
        made = (part.run(frame) for part in parts)
        return array(each if each[0] else NULL_VALUE for each in made)

    return folded(run, parts)


def check_field_name(name: bytes) -> None:
    """The error of a name that no field of a path may have."""
    if not name:
        raise refused(15998, "FieldPath field names may not be empty strings.")
    if name.startswith(b"$") and name not in (b"$id", b"$ref", b"$db"):
        raise refused(16410, f"FieldPath field names may not start with '$': {name!r}")
    if b"\0" in name:
        raise refused(16411, "FieldPath field names may not contain '\0'.")
    if b"." in name:
        raise refused(16412, f"FieldPath field names may not contain '.': {name!r}")


def path_of(text: bytes) -> tuple[bytes, ...]:
    """The parts of a dotted path, each of them a name that a field may have."""
    if not text:
        raise refused(40352, "FieldPath cannot be constructed with empty string")
    if text.endswith(b"."):
        raise refused(40353, "FieldPath must not end with a '.'.")
    parts = tuple(text.split(b"."))
    if len(parts) > MAX_PATH_PARTS:
        raise refused(15, "FieldPath is too long")
    for part in parts:
        check_field_name(part)
    return parts


def parse_path(text: bytes, scope: Scope) -> Node:
    """``$a.b`` or ``$$variable.a``."""
    if text == b"$":
        raise refused(16872, "'$' by itself is not a valid FieldPath")
    if not text.startswith(b"$$"):
        path = path_of(text[1:])
        if scope.current:
            return Node(lambda frame: value_at(frame.variables[b"CURRENT"], path))
        return Node(lambda frame: field_value(frame.root, path))
    name, dot, rest = text[2:].partition(b".")
    if dot:
        path_of(text[2:])
    check_variable(name, user=False)
    path = path_of(rest) if dot else ()
    return _variable(name, path, scope)


def _variable(name: bytes, path: tuple[bytes, ...], scope: Scope) -> Node:
    known = scope.context.variables
    if name in scope.names:
        return Node(lambda frame: value_at(frame.variables[name], path))
    if name in (b"ROOT", b"CURRENT"):
        return Node(lambda frame: field_value(frame.root, path)) if path else ROOT_NODE
    if name == b"REMOVE":
        return ABSENT_NODE
    if name in known:
        return constant(value_at(known[name], path))
    if name in SERVERS_VARIABLES:
        raise not_here(f"$${name.decode()}", "its value is not known here")
    raise refused(17276, f"Use of undefined variable: {name.decode(errors='replace')}")


def value_at(value: Value, path: tuple[bytes, ...]) -> Value:
    """What a path means inside a value."""
    kind, raw = value
    if not path:
        return value
    if kind == OBJECT:
        return field_value(raw, path)
    if kind == ARRAY:
        return array(field_value(each[1], path) for each in items(value) if each[0] == OBJECT)
    return MISSING


def check_variable(name: bytes, *, user: bool) -> None:
    """The error of what cannot be a variable's name; a user's begins in lower case."""
    if not name:
        raise refused(FAILED_TO_PARSE, "empty variable names are not allowed")
    if user and name == b"CURRENT":
        return
    first = name[0]
    lower = 97 <= first <= 122 or first >= 128
    if not (lower or (not user and 65 <= first <= 90)):
        raise refused(
            FAILED_TO_PARSE,
            f"'{name.decode(errors='replace')}' starts with an invalid character for a variable",
        )
    if not all(byte in NAME_BYTES or byte > 127 for byte in name[1:]):
        raise refused(
            FAILED_TO_PARSE,
            f"'{name.decode(errors='replace')}' contains an invalid character for a variable",
        )
