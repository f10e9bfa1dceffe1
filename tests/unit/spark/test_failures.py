"""Our errors come back out of Spark's: class, message, code."""

from __future__ import annotations

from tailrace.errors import CheckpointError, OperatorError, ServerError
from tailrace.spark.failures import converted

TRACE = """[STREAM_FAILED] An exception was raised by the Python Proxy.
Traceback (most recent call last):
  File "x.py", line 1, in call
{}

\tat org.apache.spark.Some.method(Some.scala:1)"""


def test_an_error_of_ours_comes_back_with_its_class_and_words() -> None:
    said = TRACE.format("tailrace.errors.CheckpointError: the checkpoint goes on elsewhere")
    error = converted(RuntimeError(said))
    assert (type(error), str(error)) == (CheckpointError, "the checkpoint goes on elsewhere")


def test_an_error_of_the_server_keeps_its_code() -> None:
    said = TRACE.format(
        "tailrace.errors.ServerError: it is gone (ChangeStreamHistoryLost, code 286)"
    )
    error = converted(RuntimeError(said))
    assert isinstance(error, ServerError)
    assert (error.code, error.code_name, error.message) == (
        286,
        "ChangeStreamHistoryLost",
        "it is gone",
    )


def test_what_else_goes_wrong_in_spark_is_one_short_line() -> None:
    error = converted(RuntimeError("first\nsecond\n" * 500))
    assert isinstance(error, OperatorError)
    assert "second" not in str(error)


def test_two_writers_that_collide_are_named() -> None:
    error = converted(RuntimeError("io.delta.exceptions.ConcurrentTransactionException: x"))
    assert "another query writes to this target" in str(error)
