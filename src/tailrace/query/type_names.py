"""The names of BSON's types, as ``$type`` and ``$convert`` know them.

The name of a value's type is also what the server says in its refusals.
"""

from __future__ import annotations

from tailrace.raw.elements import (
    ARRAY,
    BINARY,
    BOOL,
    CODE,
    CODE_SCOPE,
    DATE,
    DB_POINTER,
    DECIMAL,
    DOUBLE,
    INT32,
    INT64,
    MAX_KEY,
    MIN_KEY,
    NULL,
    OBJECT,
    OBJECT_ID,
    REGEX,
    STRING,
    SYMBOL,
    TIMESTAMP,
    UNDEFINED,
)

NAMES = {
    "double": DOUBLE,
    "string": STRING,
    "object": OBJECT,
    "array": ARRAY,
    "binData": BINARY,
    "undefined": UNDEFINED,
    "objectId": OBJECT_ID,
    "bool": BOOL,
    "date": DATE,
    "null": NULL,
    "regex": REGEX,
    "dbPointer": DB_POINTER,
    "javascript": CODE,
    "symbol": SYMBOL,
    "javascriptWithScope": CODE_SCOPE,
    "int": INT32,
    "timestamp": TIMESTAMP,
    "long": INT64,
    "decimal": DECIMAL,
    "minKey": MIN_KEY,
    "maxKey": MAX_KEY,
}
"""Each type's name to its byte."""

NAME_OF = {0: "missing", **{kind: name for name, kind in NAMES.items()}}
"""Each type's byte to its name."""
