"""Random queries for each operator of the match language, and documents to ask them of."""

from __future__ import annotations

from collections.abc import Callable

from bson.raw_bson import RawBSONDocument
from tests.support.operator_values import Values

from tailrace.query.values import Value, array, document, int32, string

PATHS = ("a", "b", "a.a", "a.b", "a.0", "a.0.a", "a.1.b", "a.a.b", "missing")


def query_document(values: Values) -> bytes:
    """A document with values at the paths that queries ask for."""
    return document([(b"_id", int32(1)), (b"a", shaped(values)), (b"b", shaped(values))])[1]


def shaped(values: Values, depth: int = 2) -> Value:
    """A value; often nested documents and arrays of the names that paths have."""
    draw = values.rng.random()
    if depth and draw < 0.25:
        names = values.rng.sample([b"a", b"b", b"0", b"1"], values.rng.randrange(3))
        return document((name, shaped(values, depth - 1)) for name in names)
    if depth and draw < 0.55:
        return array(shaped(values, depth - 1) for _ in range(values.rng.randrange(4)))
    return values.of(values.rng.choice(["small", "small", "string", "number", "any", "null"]))


class Queries:
    """Queries drawn with one source of chance, each as raw BSON of ``{$match: query}``."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.rng = values.rng
        self.operators: dict[str, Callable[[], Value]] = {
            **dict.fromkeys(("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"), self.any_value),
            "implicit": self.any_value,
            "$in": self.list_of_values,
            "$nin": self.list_of_values,
            "$exists": self.any_value,
            "$type": self.kind,
            "$size": lambda: self.values.of("small"),
            "$mod": self.modulo,
            "$all": self.list_of_values,
            "$regex": self.pattern,
            "$not": self.negated,
            "$elemMatch": self.element,
            **dict.fromkeys(
                ("$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"), self.mask
            ),
        }

    def any_value(self) -> Value:
        value = shaped(self.values, 1)
        return value if value[0] else int32(1)

    def list_of_values(self) -> Value:
        draw = self.rng.random()
        if draw < 0.05:
            return self.any_value()
        made = [self.any_value() for _ in range(self.rng.randrange(4))]
        if draw < 0.2:
            made.append(self.values.regex())
        return array(made)

    def kind(self) -> Value:
        names = ["double", "string", "object", "array", "null", "int", "long", "number", "bool"]
        names += ["decimal", "date", "binData", "missing", "minKey", "undefined", "regex"]
        one = [
            lambda: string(self.rng.choice(names)),
            lambda: self.values.of("small"),
            lambda: int32(self.rng.choice([1, 2, 3, 4, 16, 18, 19, -1, 127, 255])),
        ]
        if self.rng.random() < 0.2:
            return array(self.rng.choice(one)() for _ in range(self.rng.randrange(3)))
        return self.rng.choice(one)()

    def modulo(self) -> Value:
        pool = self.rng.choice(["small", "small", "number"])
        return array(self.values.of(pool) for _ in range(self.rng.choice([2, 2, 2, 2, 1, 3])))

    def pattern(self) -> Value:
        return self.rng.choice([self.values.regex, lambda: string("^a"), self.any_value])()

    def mask(self) -> Value:
        if self.rng.random() < 0.5:
            return self.rng.choice([self.values.small, self.values.number, self.values.binary])()
        return array(
            int32(self.rng.choice([0, 1, 2, 5, 31, 63, 64, 70, -1]))
            for _ in range(self.rng.randrange(3))
        )

    def negated(self) -> Value:
        if self.rng.random() < 0.1:
            return self.values.regex()
        return self.asked()

    def asked(self) -> Value:
        """An object of one or two operators."""
        names = self.rng.sample(
            ["$eq", "$gt", "$lte", "$in", "$exists", "$size", "$ne", "$type"],
            self.rng.choice([1, 1, 2]),
        )
        return document((name.encode(), self.operators[name]()) for name in names)

    def element(self) -> Value:
        if self.rng.random() < 0.5:
            return self.asked()
        name = self.rng.choice([b"a", b"b", b"0", b"a.b"])
        return document([(name, self.rng.choice([self.any_value, self.asked])())])

    def of(self, name: str) -> Value:
        """The query of one operator at some path."""
        path = self.rng.choice(PATHS).encode()
        value = self.operators[name]()
        if name == "implicit":
            return document([(path, value)])
        return document([(path, document([(name.encode(), value)]))])

    def logic(self, name: str) -> Value:
        """``$and``, ``$or`` or ``$nor`` over others."""
        simple = ["$eq", "$gt", "$exists", "$in", "$ne", "implicit"]
        parts = [self.of(self.rng.choice(simple)) for _ in range(self.rng.randrange(1, 4))]
        return document([(name.encode(), array(parts))])


def stage(query: Value) -> RawBSONDocument:
    """``{$match: query}``."""
    return RawBSONDocument(document([(b"$match", query)])[1])
