"""How the unified test format compares: what is expected is a part of what is there.

Documents match when every expected key does (the root may have more keys; what lies
inside an expected document must be all of it, unless it is a command or an event's
root). Operators begin with ``$$``; the ones that change stream cases use are here.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from bson import Decimal128, Int64, ObjectId, Timestamp

MISSING = object()
TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "bool": (bool,),
    "date": (datetime.datetime,),
    "decimal": (Decimal128,),
    "double": (float,),
    "int": (int,),
    "long": (int, Int64),
    "number": (int, float, Decimal128),
    "object": (Mapping,),
    "objectId": (ObjectId,),
    "string": (str,),
    "timestamp": (Timestamp,),
}


def check_match(expected: Any, actual: Any, *, root: bool = True, path: str = "") -> None:
    """Fail unless what is there matches what is expected."""
    operator = _operator(expected)
    if operator:
        OPERATORS[operator](expected[operator], actual, path)
    elif isinstance(expected, Mapping):
        assert isinstance(actual, Mapping), f"{path}: {actual!r} is no document"
        for key, value in expected.items():
            check_match(value, actual.get(key, MISSING), root=False, path=f"{path}.{key}")
        if not root:
            extra = set(actual) - set(expected)
            assert not extra, f"{path}: {sorted(extra)} were not expected"
    elif isinstance(expected, Sequence) and not isinstance(expected, str | bytes):
        assert isinstance(actual, Sequence), f"{path}: {actual!r} is no array"
        assert len(actual) == len(expected), f"{path}: {actual!r} is not {expected!r}"
        for at, (one, other) in enumerate(zip(expected, actual, strict=True)):
            check_match(one, other, root=root, path=f"{path}[{at}]")
    else:
        assert actual == expected, f"{path}: {actual!r} is not {expected!r}"


def _operator(expected: Any) -> str:
    if isinstance(expected, Mapping) and len(expected) == 1:
        (name,) = expected
        return name if name.startswith("$$") else ""
    return ""


def _exists(expected: bool, actual: Any, path: str) -> None:
    assert (actual is not MISSING) is expected, f"{path}: exists is not {expected}"


def _unset_or_matches(expected: Any, actual: Any, path: str) -> None:
    if actual is not MISSING:
        check_match(expected, actual, root=False, path=path)


def _type(expected: Any, actual: Any, path: str) -> None:
    names = [expected] if isinstance(expected, str) else expected
    allowed = tuple(kind for name in names for kind in TYPES[name])
    assert isinstance(actual, allowed), f"{path}: {actual!r} is no {names}"


OPERATORS = {"$$exists": _exists, "$$unsetOrMatches": _unset_or_matches, "$$type": _type}
