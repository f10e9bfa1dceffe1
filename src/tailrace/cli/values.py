"""Values on the command line: Extended JSON, times and tokens.

Each reader takes the option's name, so that a refusal says which value is wrong, and
gives an ``OptionError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from bson import json_util
from bson.timestamp import Timestamp

from tailrace.errors import OptionError

_TIMESTAMP = re.compile(r"(?:Timestamp\()?\s*(\d+)\s*,\s*(\d+)\s*\)?")
UINT32_MAX = (1 << 32) - 1


def json_value(name: str, text: str | None) -> Any:
    """A value given as Extended JSON; None stays None."""
    if text is None:
        return None
    try:
        return json_util.loads(text)
    except (json.JSONDecodeError, TypeError, ValueError, KeyError) as error:
        raise OptionError(f"{name} is not Extended JSON: {error}", option=name) from error


def json_value_or_text(text: str) -> Any:
    """A value given as Extended JSON, or else the words themselves."""
    try:
        return json_util.loads(text)
    except (json.JSONDecodeError, TypeError, ValueError, KeyError):
        return text


def json_object(name: str, text: str | None) -> dict[str, Any] | None:
    """A document given as Extended JSON."""
    value = json_value(name, text)
    if value is None or isinstance(value, dict):
        return value
    raise OptionError(f"{name} must be a JSON object, like '{{}}'", option=name)


def json_array(name: str, text: str | None) -> list[Any] | None:
    """A list of documents given as Extended JSON."""
    value = json_value(name, text)
    if value is None or (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
        return value
    raise OptionError(f"{name} must be a JSON array of objects, like '[]'", option=name)


def token_document(name: str, text: str | None) -> dict[str, Any] | None:
    """A resume token: its hex string, or the document that holds it."""
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        return json_object(name, text)
    return {"_data": text.strip()}


def cluster_time(name: str, text: str | None) -> Timestamp | None:
    """A cluster time: ``Timestamp(1700000000, 1)``, ``1700000000,1``, or an ISO 8601 time."""
    if text is None:
        return None
    match = _TIMESTAMP.fullmatch(text.strip())
    seconds, increment = (int(match[1]), int(match[2])) if match else (_iso(name, text), 0)
    if not (0 < seconds <= UINT32_MAX and 0 <= increment <= UINT32_MAX):
        raise OptionError(f"{name}: {text} is no cluster time", option=name)
    return Timestamp(seconds, increment)


def _iso(name: str, text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise OptionError(
            f"{name}: {text!r} is neither Timestamp(seconds, increment) nor an ISO 8601 time "
            "like 2026-11-18T12:00:00Z",
            option=name,
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return int(moment.timestamp())


def pairs(name: str, words: Sequence[str] | None) -> dict[str, str]:
    """Names and values from ``name=value`` words."""
    found = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise OptionError(f"{name} {word!r} is not name=value", option=name)
        found[key.strip()] = value
    return found
