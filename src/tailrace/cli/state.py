"""The file of ``--state``: a token store that says so when it cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailrace.driver import FileTokenStore
from tailrace.errors import OptionError


class StateFile(FileTokenStore):
    """The file that remembers how far a stream was written out."""

    def __init__(self, path: Path, namespace: str | None) -> None:
        super().__init__(path, namespace)

    def load(self) -> dict[str, Any] | None:
        """The token that was saved last; None when there is no file yet."""
        try:
            return super().load()
        except OptionError as error:
            raise OptionError(f"--state {error}", option="--state") from error

    def save(self, token: Mapping[str, Any]) -> None:
        """Put a token in the place of the one before; durable when this returns."""
        try:
            super().save(token)
        except OptionError as error:
            raise OptionError(f"--state {error}", option="--state") from error
