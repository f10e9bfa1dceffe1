"""Regular expressions as values: whether, where and how often they are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tailrace.query.context import refused
from tailrace.query.expressions.node import Frame, Node, folded
from tailrace.query.expressions.parser import Operator, Reader, Scope, parse
from tailrace.query.expressions.reading import arguments, required
from tailrace.query.regex import Pattern, bounded, compiled
from tailrace.query.values import (
    FALSE,
    NULL_VALUE,
    NULLISH,
    TRUE,
    Value,
    array,
    document,
    int32,
    string_bytes,
    text_bytes,
)
from tailrace.raw.elements import REGEX, STRING

PARTS = ("input", "regex", "options")


def _reader(function: Callable[[Any, bytes], Value], otherwise: Value) -> Reader:
    def read(name: str, argument: Value, scope: Scope) -> Node:
        given = arguments(name, argument, PARTS, not_object=51103, unknown=31024)
        required(name, given, {"input": 31022, "regex": 31023})
        parts = {word: parse(value, scope) for word, value in given.items()}
        regex, options = parts["regex"], parts.get("options")
        if regex.constant is not None and (options is None or options.constant is not None):
            _pattern(regex.constant, options.constant if options else None)

        def run(frame: Frame) -> Value:
            text = parts["input"].run(frame)
            if text[0] not in NULLISH and text[0] != STRING:
                raise refused(51104, f"{name} needs 'input' to be of type string")
            pattern = _pattern(regex.run(frame), options.run(frame) if options else None)
            if text[0] in NULLISH or pattern is None:
                return otherwise
            return function(compiled(pattern), text_bytes(text))

        return folded(run, list(parts.values()))

    return read


def _pattern(value: Value, options: Value | None) -> Pattern | None:
    """The pattern of the parts, or None where one of them is null."""
    if value[0] not in NULLISH and value[0] not in (STRING, REGEX):
        raise refused(51105, "'regex' must be of type string or regex")
    source, flags = b"", b""
    if value[0] == REGEX:
        source, flags, _ = value[1].split(b"\0")
    elif value[0] == STRING:
        source = text_bytes(value)
    if options is not None and options[0] not in NULLISH:
        if options[0] != STRING:
            raise refused(51106, "'options' must be of type string")
        if flags:
            raise refused(51107, "found regex options specified in both 'regex' and 'options'")
        flags = text_bytes(options)
    if b"\0" in source or b"\0" in flags:
        raise refused(51109, "'regex' cannot contain null bytes")
    if value[0] in NULLISH:
        return None
    pattern = Pattern(source, flags.decode(errors="replace"))
    compiled(pattern, 51111)
    return pattern


def _found(match: Any, text: bytes) -> Value:
    start = match.start()
    before = len(text[:start].decode("utf-8", "surrogateescape"))
    return document(
        (
            (b"match", string_bytes(match.group())),
            (b"idx", int32(before)),
            (b"captures", array(_captures(match))),
        )
    )


def _captures(match: Any) -> Iterator[Value]:
    for each in match.groups():
        yield NULL_VALUE if each is None else string_bytes(each)


def _find(pattern: Any, text: bytes) -> Value:
    match = bounded(pattern.search, text)
    return NULL_VALUE if match is None else _found(match, text)


def _find_all(pattern: Any, text: bytes) -> Value:
    found, at = [], 0
    while at < len(text) or at == 0:
        match = bounded(partial(pattern.search, pos=at), text)
        if match is None:
            break
        found.append(_found(match, text))
        at = match.end()
        if match.end() == match.start():
            at += 1
            while at < len(text) and text[at] & 0xC0 == 0x80:
                at += 1
    return array(found)


def _matches(pattern: Any, text: bytes) -> Value:
    return FALSE if bounded(pattern.search, text) is None else TRUE


REGEXES = {
    "$regexMatch": Operator(_reader(_matches, FALSE)),
    "$regexFind": Operator(_reader(_find, NULL_VALUE)),
    "$regexFindAll": Operator(_reader(_find_all, array(()))),
}
