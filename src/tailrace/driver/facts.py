"""What anybody may ask a change stream about itself; the same for both kinds of stream.

Nobody should need a private name to see what a stream was asked for, which cursor it
reads on which server, and what it holds.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from tailrace.driver.document import decoder
from tailrace.driver.machine import ResumeMachine
from tailrace.driver.requests import Address, Token


class StreamFacts:
    """The public view of a stream: what it was asked for, and where it is."""

    def __init__(
        self,
        machine: ResumeMachine,
        *,
        target: Any,
        pipeline: Sequence[Mapping[str, Any]],
        options: Mapping[str, Any],
        codec_options: CodecOptions[Any],
    ) -> None:
        self._machine = machine
        self._decoded = decoder(codec_options)
        self.target = target
        """The client, database or collection that is watched."""
        self.pipeline = pipeline
        """The caller's stages, behind the ``$changeStream`` stage."""
        self.options = options
        """Every option that was given, by the name it was given under."""

    @property
    def resume_token(self) -> Any:
        """What a new stream goes on from behind all that this one handed out."""
        return self._decoded_token(self._machine.token)

    @property
    def alive(self) -> bool:
        """Whether more may come: not closed, and not at the end of what is watched."""
        return self._machine.alive

    @property
    def buffered(self) -> int:
        """How many events were fetched and not yet handed out."""
        return self._machine.buffered

    @property
    def cursor_id(self) -> int:
        """The server's number for the cursor; 0 when there is none."""
        cursor = self._machine.cursor
        return 0 if cursor is None else cursor.number

    @property
    def address(self) -> Address | None:
        """The server that holds the cursor."""
        cursor = self._machine.cursor
        return None if cursor is None else cursor.address

    @property
    def namespace(self) -> str | None:
        """The cursor's namespace, as the server named it."""
        cursor = self._machine.cursor
        return None if cursor is None else f"{cursor.database}.{cursor.collection}"

    @property
    def max_await_time_ms(self) -> int | None:
        """How long the server waits for events before it answers without any."""
        wait: int | None = self.options.get("max_await_time_ms")
        return wait

    def _decoded_token(self, token: Token | None) -> Any:
        if isinstance(token, RawBSONDocument):
            return self._decoded(token)
        return copy.deepcopy(token)
