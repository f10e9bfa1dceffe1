"""The byte that opens each KeyString value, and the bytes that stand for BSON types.

KeyString compares by ``memcmp``, so these numbers are the server's order over types.
Inside objects a field is announced by its *generic* byte first: all numbers share
one, and so do both booleans.

Spec: facts/server-semantics, 1.1, 1.2 and 1.4.
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

END = 0x04
C_MIN_KEY, C_UNDEFINED, C_NULL, C_NUMERIC = 0x0A, 0x0F, 0x14, 0x1E
C_NAN = C_NUMERIC
C_NEGATIVE_LARGE, C_NEGATIVE_8_BYTES, C_NEGATIVE_1_BYTE, C_NEGATIVE_SMALL = 0x1F, 0x20, 0x27, 0x28
C_ZERO = 0x29
C_POSITIVE_SMALL, C_POSITIVE_1_BYTE, C_POSITIVE_8_BYTES, C_POSITIVE_LARGE = 0x2A, 0x2B, 0x32, 0x33
C_STRING, C_OBJECT, C_ARRAY, C_BINARY, C_OBJECT_ID = 0x3C, 0x46, 0x50, 0x5A, 0x64
C_BOOL = C_FALSE = 0x6E
C_TRUE = 0x6F
C_DATE, C_TIMESTAMP, C_REGEX, C_DB_POINTER = 0x78, 0x82, 0x8C, 0x96
C_CODE, C_CODE_SCOPE, C_MAX_KEY = 0xA0, 0xAA, 0xF0

GENERIC = {
    MIN_KEY: C_MIN_KEY,
    UNDEFINED: C_UNDEFINED,
    NULL: C_NULL,
    DOUBLE: C_NUMERIC,
    INT32: C_NUMERIC,
    INT64: C_NUMERIC,
    DECIMAL: C_NUMERIC,
    STRING: C_STRING,
    SYMBOL: C_STRING,
    OBJECT: C_OBJECT,
    ARRAY: C_ARRAY,
    BINARY: C_BINARY,
    OBJECT_ID: C_OBJECT_ID,
    BOOL: C_BOOL,
    DATE: C_DATE,
    TIMESTAMP: C_TIMESTAMP,
    REGEX: C_REGEX,
    DB_POINTER: C_DB_POINTER,
    CODE: C_CODE,
    CODE_SCOPE: C_CODE_SCOPE,
    MAX_KEY: C_MAX_KEY,
}
"""BSON type byte to the generic byte that announces a field of that type."""
