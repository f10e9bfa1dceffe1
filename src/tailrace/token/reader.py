"""A place in a key's bytes that moves forwards, and refuses to pass the end.

Positions in errors count hex digits, since that is the form in which people see
tokens.
"""

from __future__ import annotations

from tailrace.errors import BadToken
from tailrace.token.typebits import Bits

CUT_SHORT = 15
NOT_TERMINATED = 50816


class Reader:
    """The bytes of a key, read one piece after the other."""

    __slots__ = ("at", "bits", "key")

    def __init__(self, key: bytes, bits: Bits) -> None:
        self.key = key
        self.bits = bits
        self.at = 0

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def peek(self) -> int:
        """The next byte, which stays unread."""
        return self.take(1, keep=True)[0]

    def take(self, size: int, *, keep: bool = False) -> bytes:
        """The next ``size`` bytes."""
        end = self.at + size
        if end > len(self.key):
            raise self.broken("the key is cut short", CUT_SHORT, len(self.key))
        taken = self.key[self.at : end]
        if not keep:
            self.at = end
        return taken

    def until_zero(self) -> bytes:
        """The bytes up to the next NUL, which is passed."""
        end = self.key.find(0, self.at)
        if end < 0:
            raise self.broken("a string does not end", NOT_TERMINATED, self.at)
        taken = self.key[self.at : end]
        self.at = end + 1
        return taken

    def text(self) -> bytes:
        """The bytes of a string, in which a NUL is written as 00 FF."""
        parts = [self.until_zero()]
        while self.at < len(self.key) and self.key[self.at] == 0xFF:
            self.at += 1
            parts.append(self.until_zero())
        return b"\x00".join(parts)

    def broken(self, message: str, code: int, at: int) -> BadToken:
        """The error of bytes that make no sense from a byte on."""
        position = 2 * at
        return BadToken(f"{message} (hex digit {position})", code=code, position=position)
