"""Clients of the source: one for each process and URI, kept as long as the process.

Spark's Python workers live from task to task, so that a task finds its client open. A
URI that is none is the operator's business; it is never shown, as it may hold a password.
"""

from __future__ import annotations

import os

from pymongo.errors import ConfigurationError, InvalidURI

from tailrace.errors import OptionError
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.slices import Pin, pinned

APPLICATION = "tailrace-spark"
MOST_CLIENTS = 8
"""A process reads one source, or a few; the one that was asked for first goes first."""
_open: dict[tuple[str, int], tuple[Deployment, Pin]] = {}


def connect(uri: str) -> tuple[Deployment, Pin]:
    """The deployment behind a URI, and what holds reads to one of its members."""
    key = (uri, os.getpid())  # a client does not survive a fork
    found = _open.get(key)
    if found is None:
        while len(_open) >= MOST_CLIENTS:
            deployment, _ = _open.pop(next(iter(_open)))
            deployment.client.close()
        found = _open[key] = _connected(uri)
    return found


def close_all() -> None:
    """Close what this process opened; what it took along in a fork is its parent's."""
    for key in [each for each in _open if each[1] == os.getpid()]:
        deployment, _ = _open.pop(key)
        deployment.client.close()


def _connected(uri: str) -> tuple[Deployment, Pin]:
    try:
        client, pin = pinned(uri, appname=APPLICATION)
    except (ConfigurationError, InvalidURI, ValueError) as error:
        raise OptionError(f"uri: {error}", option="uri") from error
    return Deployment(client), pin
