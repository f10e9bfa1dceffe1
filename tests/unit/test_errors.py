"""The exceptions: they survive pickling with all they carry, and none is left out."""

from __future__ import annotations

import inspect
import pickle

import pytest

from tailrace import errors
from tailrace.errors import BadToken, ServerError, TailraceError, code_name

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, TailraceError)
]


def made(kind: type[TailraceError]) -> TailraceError:
    fields = {"code": 286} if issubclass(kind, ServerError) else {}
    return kind("a message", hint="what to do", offset=0, **fields)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_is_the_same_after_pickling(kind: type[TailraceError], protocol: int) -> None:
    error = made(kind)
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is kind
    assert (str(again), again.message, again.fields) == (str(error), error.message, error.fields)
    assert (again.hint, again.offset) == ("what to do", 0)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_error_is_drawn_in_the_tree(kind: type[TailraceError]) -> None:
    assert kind.__name__ in (errors.__doc__ or "")


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="BadBson has no field 'token'"):
        _ = errors.BadBson("a message", offset=1).token


def test_a_server_error_names_its_code() -> None:
    error = BadToken("a message", code=260, position=3)
    assert (error.code, error.code_name, error.position) == (260, "InvalidResumeToken", 3)
    assert str(error) == "a message (InvalidResumeToken, code 260)"


def test_a_code_without_a_name_is_called_as_the_server_calls_it() -> None:
    assert code_name(50811) == "Location50811"
