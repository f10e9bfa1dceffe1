"""Every exception of the package, drawn as a tree by who must act.

    TailraceError
    ├── SourceLost             we retry: the source went away and may come back
    ├── OperatorError          the operator acts: the message says what, and where
    │   ├── OptionError          an option's name or value is wrong
    │   ├── CheckpointError      a checkpoint is of another source, or of another release
    │   ├── DivergedTable        a table lacks what the log goes on from: load it again
    │   ├── PrivilegeError       a grant is missing (``grant`` says which)
    │   ├── MissingServer        a binary or an extra is not installed
    │   ├── ServerStartFailed    an embedded server did not come up (``log``: its last words)
    │   ├── UnsupportedSource    this server or version cannot be read
    │   └── NotEvaluable         only a server can evaluate it (``operator`` names it)
    ├── BadDocument            these bytes are not what they should be
    │   ├── BadBson              not BSON (``offset`` into the bytes)
    │   └── BadArchive           an oplog archive ends or breaks at ``offset``
    ├── ProtocolError          the peer broke the protocol
    ├── OutcomeUnknown         look first, never retry blind
    └── ServerError            what mongod itself would answer: ``code``, ``code_name``
        └── BadToken             not a resume token (``position`` in its hex string)

Errors carry fields, not prose to parse; all of them pickle (Spark ships them).
"""

from __future__ import annotations

from typing import Any

CODE_NAMES = {
    2: "BadValue",
    9: "FailedToParse",
    14: "TypeMismatch",
    15: "Overflow",
    18: "AuthenticationFailed",
    20: "IllegalOperation",
    43: "CursorNotFound",
    47: "NoMatchingDocument",
    72: "InvalidOptions",
    73: "InvalidNamespace",
    136: "CappedPositionLost",
    146: "ExceededMemoryLimit",
    159: "DurationOverflow",
    166: "CommandNotSupportedOnView",
    168: "InvalidPipelineOperator",
    207: "InvalidUUID",
    234: "RetryChangeStream",
    237: "CursorKilled",
    241: "ConversionFailure",
    260: "InvalidResumeToken",
    280: "ChangeStreamFatalError",
    286: "ChangeStreamHistoryLost",
    323: "APIStrictError",
    346: "ChangeStreamInvalidated",
    10334: "BSONObjectTooLarge",
}
"""The server's names for the codes that a change stream can end with."""


def code_name(code: int) -> str:
    """The server's name for an error code; unnamed ones are ``Location<code>``."""
    return CODE_NAMES.get(code, f"Location{code}")


class TailraceError(Exception):
    """The root: catching it catches all that tailrace raises on purpose."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.fields)


class SourceLost(TailraceError):
    """The source went away; reading again from the last token is safe."""


class OperatorError(TailraceError):
    """Somebody who runs this has to change something; ``hint`` says what."""


class OptionError(OperatorError):
    """An option's name or value is wrong; ``option`` names it."""


class DivergedTable(OperatorError):
    """A table lacks what the log goes on from, so that an event cannot be applied to it."""


class CheckpointError(OperatorError):
    """A checkpoint, or an offset in it, is not one that this source can go on from."""


class PrivilegeError(OperatorError):
    """The user may not do this; ``grant`` is the role or action that is missing."""


class MissingServer(OperatorError):
    """A server binary is not here; ``extra`` is the package extra that brings it."""


class ServerStartFailed(OperatorError):
    """An embedded server did not come up, or ended; ``log`` is the end of its log."""


class UnsupportedSource(OperatorError):
    """This server, version or topology cannot be read."""


class NotEvaluable(OperatorError):
    """A pipeline's operator that only a server can evaluate; ``operator`` names it."""


class BadDocument(TailraceError):
    """Bytes that are not what they should be."""


class BadBson(BadDocument):
    """Not BSON; ``offset`` is where in the bytes."""


class BadArchive(BadDocument):
    """An oplog archive is cut short or corrupt; ``offset`` is the byte in the unpacked data."""


class ProtocolError(TailraceError):
    """The peer sent what its protocol does not allow."""


class OutcomeUnknown(TailraceError):
    """Something was sent and no answer came: look before doing it again."""


class ServerError(TailraceError):
    """An error with MongoDB's own code and code name, wherever it was found."""

    def __init__(self, message: str, *, code: int, **fields: Any) -> None:
        super().__init__(message, code=code, **fields)
        self.code = code
        self.code_name: str = fields.get("code_name") or code_name(code)

    def __str__(self) -> str:
        return f"{self.message} ({self.code_name}, code {self.code})"


class BadToken(ServerError):
    """Not a resume token; ``position`` is the hex digit at which it stops making sense."""


def _rebuild(kind: type[TailraceError], message: str, fields: dict[str, Any]) -> TailraceError:
    return kind(message, **fields)
