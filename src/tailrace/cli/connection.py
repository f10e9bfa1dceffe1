"""A connection string from the command line, made a client, with no secret of it ever shown.

PyMongo says what is wrong with a connection string, and may repeat parts of it: what it
says is shown only where it holds nothing of the login and of the passwords behind it.
"""

from __future__ import annotations

import re
import warnings
from typing import Any
from urllib.parse import parse_qsl, unquote

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tailrace.cli.output import say
from tailrace.errors import OptionError

_SECRET_OPTION = re.compile(r"password|token|secret|properties", re.IGNORECASE)
HIDDEN = "cannot be used: percent-encode the user and the password"


def client_of(uri: str) -> MongoClient[dict[str, Any]]:
    """A client for a connection string; what it ignores in it is said, one line each."""
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            client: MongoClient[dict[str, Any]] = MongoClient(uri, appname="tailrace")
        except (PyMongoError, OSError, ValueError) as error:
            raise OptionError(f"URI: {without_secrets(str(error), uri)}", option="URI") from None
    for notice in noticed:
        say(f"tailrace: URI: {without_secrets(str(notice.message), uri)}")
    return client


def without_secrets(message: str, uri: str) -> str:
    """What PyMongo says of a connection string, unless it repeats a secret of it."""
    rest = uri.partition("://")[2]
    login = rest.rpartition("@")[0]
    secrets = re.split(r"[:@/]", login)
    options = parse_qsl(rest.rpartition("@")[2].partition("?")[2])
    secrets += [value for name, value in options if _SECRET_OPTION.search(name)]
    shown = (form for secret in secrets if secret for form in (secret, unquote(secret)))
    return HIDDEN if any(form in message for form in shown) else message
