"""Clients of the source: one for each process and URI, kept as long as the process.

Spark's Python workers live from task to task, so that a task finds its client open. A
URI that is none is the operator's business; it is never shown, as it may hold a password.
"""

from __future__ import annotations

import os
from functools import lru_cache

from pymongo.errors import ConfigurationError, InvalidURI

from tailrace.errors import OptionError
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.slices import Pin, pinned

APPLICATION = "tailrace-spark"


def connect(uri: str) -> tuple[Deployment, Pin]:
    """The deployment behind a URI, and what holds reads to one of its members."""
    return _connected(uri, os.getpid())


@lru_cache(maxsize=8)
def _connected(uri: str, process: int) -> tuple[Deployment, Pin]:
    try:
        client, pin = pinned(uri, appname=APPLICATION)
    except (ConfigurationError, InvalidURI) as error:
        raise OptionError(f"uri: {error}", option="uri") from error
    return Deployment(client), pin
