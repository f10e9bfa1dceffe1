"""Regular expressions as the server runs them: PCRE over UTF-8, by PCRE2 itself.

Character classes are ASCII's and case is Unicode's, as the server sets them. PCRE2
bounds how long it looks (``match limit``); a pattern that exceeds it is an error and
never a verdict. Patterns are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pcre2

from tailrace.query.context import refused
from tailrace.query.paths import Test
from tailrace.query.values import Value, text_bytes
from tailrace.raw import Span
from tailrace.raw.elements import REGEX, STRING, SYMBOL

BAD_VALUE = 2
INVALID_FLAG = 51108
INVALID_PATTERN = 51091
NUL_INSIDE = 51109
BOTH_HAVE_OPTIONS = 51075
LOOKED_TOO_LONG = 51156
MAX_PATTERN_BYTES = 16_384
"""The server's own bound; PCRE2's for the rest is its match limit."""

FLAGS = {
    "i": pcre2.IGNORECASE,
    "m": pcre2.MULTILINE,
    "s": pcre2.DOTALL,
    "x": pcre2.VERBOSE,
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern's source and its flags, as they are written in BSON."""

    source: bytes
    flags: str = ""

    def value(self) -> bytes:
        """The same as the bytes of a BSON regular expression."""
        return self.source + b"\0" + self.flags.encode() + b"\0"


def pattern_of(value: Value, options: Value | None = None) -> Pattern:
    """The pattern of a regular expression or a string, with options beside it."""
    if value[0] == REGEX:
        source, flags, _ = value[1].split(b"\0")
        own = flags.decode(errors="replace")
    elif value[0] == STRING:
        source, own = text_bytes(value), ""
    else:
        raise refused(BAD_VALUE, "$regex has to be a string")
    if options is not None:
        if options[0] != STRING:
            raise refused(BAD_VALUE, "$options has to be a string")
        if own:
            raise refused(BOTH_HAVE_OPTIONS, "options set in both $regex and $options")
        own = text_bytes(options).decode(errors="replace")
    if b"\0" in source or "\0" in own:
        raise refused(NUL_INSIDE, "a regular expression cannot contain an embedded null byte")
    return Pattern(source, own)


def pattern_test(pattern: Pattern) -> Test:
    """The test of an element: a string in which the pattern is found, or the pattern itself."""
    search = compiled(pattern).search
    same = pattern.value()

    def test(buffer: bytes, span: Span) -> bool:
        kind, start, end = span
        if kind in (STRING, SYMBOL):
            return bounded(search, buffer[start + 4 : end - 1]) is not None
        return kind == REGEX and buffer[start:end] == same

    return test


@lru_cache(maxsize=512)
def compiled(pattern: Pattern, invalid: int = INVALID_PATTERN) -> Any:
    """The pattern made ready, or the server's refusal with the code of who asks."""
    flags = pcre2.UNICODE | pcre2.ASCII
    for letter in pattern.flags:
        if letter not in FLAGS:
            raise refused(INVALID_FLAG, f"invalid flag in regex options: {letter}")
        flags |= FLAGS[letter]
    if len(pattern.source) > MAX_PATTERN_BYTES:
        raise refused(invalid, "Regular expression is too long")
    try:
        return pcre2.compile(pattern.source, flags)
    except pcre2.PatternError as error:
        raise refused(invalid, f"Regular expression is invalid: {error}") from error


def bounded(search: Callable[[bytes], Any], text: bytes) -> Any:
    """What a search finds, or the error of one that looked too long."""
    try:
        return search(text)
    except pcre2.LibraryError as error:
        raise refused(
            LOOKED_TOO_LONG, f"Error occurred while executing the regular expression: {error}"
        ) from error
