"""A stream's place in a file, so that the next run goes on where this one ended.

The file holds one line of JSON: the token, and what the stream watches. It is
replaced as a whole, and on disk before ``save`` returns: a crash leaves the old place
or the new one, never half of one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bson import json_util

from tailrace.errors import OptionError

FORMAT = 1


class StateFile:
    """The file that remembers how far a stream was written out."""

    def __init__(self, path: Path, namespace: str | None) -> None:
        self._path = path
        self._namespace = namespace
        self._saved: dict[str, Any] | None = None

    def load(self) -> dict[str, Any] | None:
        """The token that was saved last; None when there is no file yet."""
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._bad(f"cannot be read: {error.strerror}") from error
        try:
            state = json_util.loads(text)
            known, namespace, token = state["format"], state["namespace"], state["token"]
        except (json.JSONDecodeError, TypeError, ValueError, KeyError) as error:
            raise self._bad("is not a state file") from error
        if known != FORMAT or not isinstance(token, dict):
            raise self._bad(f"is of format {known}, not {FORMAT}")
        if namespace != self._namespace:
            raise self._bad(
                f"belongs to a stream of {_said(namespace)}, not of {_said(self._namespace)}"
            )
        self._saved = token
        return token

    def save(self, token: dict[str, Any]) -> None:
        """Put a token in the place of the one before; durable when this returns."""
        if token == self._saved:
            return
        state = {"format": FORMAT, "namespace": self._namespace, "token": token}
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(json_util.dumps(state) + "\n")
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise self._bad(f"cannot be written: {error.strerror}") from error
        self._saved = token

    def _bad(self, what: str) -> OptionError:
        return OptionError(f"--state {self._path} {what}", option="--state")


def _said(namespace: str | None) -> str:
    return "the whole deployment" if namespace is None else namespace
