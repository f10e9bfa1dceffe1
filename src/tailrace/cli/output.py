"""Words and statuses with which a command ends; one table for all of them.

An error of the package is one line on standard error; its class decides the exit
status. Events go to standard output as JSON lines or BSON. JSON cannot say what is no
UTF-8: such bytes are shown as U+FFFD, where BSON keeps them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated

import typer
from bson import json_util
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from bson.json_util import CANONICAL_JSON_OPTIONS, RELAXED_JSON_OPTIONS
from bson.raw_bson import RawBSONDocument
from pymongo.errors import PyMongoError

from tailrace.errors import BadDocument, OperatorError, ServerError, TailraceError
from tailrace.oplog.deployment import converted

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
STATUS_OF: tuple[tuple[type[TailraceError], int], ...] = (
    (ServerError, 3),
    (BadDocument, 4),
    (OperatorError, EXIT_USAGE),
    (TailraceError, EXIT_FAILED),
)
"""The first class that an error is of decides the exit status."""
READ_EVERYTHING = CodecOptions(
    document_class=RawBSONDocument,
    datetime_conversion=DatetimeConversion.DATETIME_MS,
    unicode_decode_error_handler="replace",
)
"""Dates before year 1 and after 9999 are dates, too."""


class Format(str, Enum):
    """How events are written."""

    JSONL = "jsonl"
    BSON = "bson"


FormatOption = Annotated[Format, typer.Option("--format", help="How events are written.")]
RelaxedOption = Annotated[
    bool, typer.Option("--relaxed", help="Relaxed instead of canonical Extended JSON.")
]
NamespaceOption = Annotated[
    str | None, typer.Option(help="db or db.collection; the whole deployment without.")
]


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """End the command with one line and the status of its error."""
    try:
        yield
        sys.stdout.flush()
    except TailraceError as error:
        say(f"tailrace: {in_one_line(error)}")
        raise typer.Exit(status_of(error)) from None
    except BrokenPipeError:
        # Whoever read us is gone; nothing more may be written, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(EXIT_FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def in_one_line(error: Exception) -> str:
    """What an error says, without line breaks."""
    return " ".join(str(error).split())


@contextlib.contextmanager
def pymongo_errors_as_ours() -> Iterator[None]:
    """Have PyMongo's errors be the package's, by who must act."""
    try:
        yield
    except PyMongoError as error:
        if isinstance(error.__cause__, TailraceError):
            raise error.__cause__ from None
        raise converted(error, "the actions find and changeStream on what is watched") from error


def status_of(error: TailraceError) -> int:
    """The exit status of an error."""
    return next(status for kind, status in STATUS_OF if isinstance(error, kind))


def say(line: str) -> None:
    """One line on standard error."""
    sys.stderr.write(line + "\n")


def event_writer(form: Format, *, relaxed: bool) -> Callable[[bytes], None]:
    """What writes one event's bytes to standard output."""
    if form is Format.BSON:
        write = sys.stdout.buffer.write
        return lambda raw: _ignore(write(raw))
    json_options = RELAXED_JSON_OPTIONS if relaxed else CANONICAL_JSON_OPTIONS
    out = sys.stdout

    def write_line(raw: bytes) -> None:
        try:
            line = json_util.dumps(RawBSONDocument(raw, READ_EVERYTHING), json_options=json_options)
        except BSONError as error:
            raise BadDocument(f"an event that JSON cannot show: {error}") from error
        out.write(line + "\n")

    return write_line


def _ignore(_written: int) -> None:
    """A writer's count of bytes is nobody's business."""
