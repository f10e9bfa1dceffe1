"""``tailrace token``: what is in a resume token, and a token to start from.

``decode`` explains a token that a change stream gave; ``at`` makes a high-water mark
of a time, from which a stream shows every event of that time and later. A string that
is no token ends in one line that says what is wrong, and at which digit.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated
from uuid import UUID

import bson
import typer
from bson import json_util
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.json_util import JSONMode, JSONOptions

from tailrace.cli.output import errors_in_one_line
from tailrace.cli.values import cluster_time, token_document
from tailrace.errors import OptionError
from tailrace.token import ResumeToken
from tailrace.token.layout import NEWEST_VERSION

AS_STORED: CodecOptions[dict[str, object]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
)
"""A token may hold dates beyond Python's, and strings that are no UTF-8."""
SHOWN = JSONOptions(
    json_mode=JSONMode.RELAXED,
    datetime_conversion=DatetimeConversion.DATETIME_MS,
    uuid_representation=UuidRepresentation.UNSPECIFIED,
)

app = typer.Typer(no_args_is_help=True, help="Look into resume tokens, and make them.")


@app.command()
def decode(
    token: Annotated[str, typer.Argument(help="The hex string, or the token's JSON document.")],
    type_bits: Annotated[
        str | None, typer.Option(help="The token's _typeBits, in hex, if it has them.")
    ] = None,
) -> None:
    """Show what is in a resume token."""
    with errors_in_one_line():
        document = token_document("TOKEN", token)
        if document is None:
            raise OptionError("TOKEN is missing", option="TOKEN")
        if type_bits is not None:
            document["_typeBits"] = _bytes(type_bits)
        for name, text in described(ResumeToken.parse(document)):
            typer.echo(f"{name:<16} {text}")


@app.command()
def at(
    time: Annotated[str, typer.Argument(help="An ISO 8601 time, or Timestamp(t, i).")],
    version: Annotated[
        int, typer.Option(min=0, max=NEWEST_VERSION, help="2 since MongoDB 6.1, 1 before.")
    ] = 1,
) -> None:
    """Make a high-water mark: a stream from it starts with the events of that time."""
    with errors_in_one_line():
        moment = cluster_time("TIME", time)
        if moment is None:
            raise OptionError("TIME is missing", option="TIME")
        typer.echo(str(ResumeToken.at(moment.time << 32 | moment.inc, version)))


def described(token: ResumeToken) -> list[tuple[str, str]]:
    """A token's elements as names and texts, in their order."""
    stamp = token.timestamp
    wall = datetime.fromtimestamp(stamp.time, timezone.utc).isoformat().replace("+00:00", "Z")
    kind = "high-water mark" if token.is_high_water_mark else "event"
    rows = [
        ("clusterTime", f"Timestamp({stamp.time}, {stamp.inc})  {wall}"),
        ("version", str(token.version)),
        ("tokenType", kind),
    ]
    if token.uuid is not None:
        rows.append(("uuid", str(UUID(bytes=token.uuid))))
    if token.is_high_water_mark:
        return rows
    rows += [
        ("txnOpIndex", str(token.index)),
        ("fromInvalidate", str(token.from_invalidate).lower()),
    ]
    if token.identifier is not None:
        identifier = bson.decode(token.identifier, AS_STORED)
        rows.append(("eventIdentifier", json_util.dumps(identifier, json_options=SHOWN)))
    if token.fragment is not None:
        rows.append(("fragmentNum", str(token.fragment)))
    return rows


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise OptionError(f"--type-bits is not hex: {text!r}", option="--type-bits") from None
