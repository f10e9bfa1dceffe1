"""A user of a throw-away server, and how it stands in a connection string.

The password is random, and hidden from ``repr``: a login may stand in an error or a
log. The connection string of a server that is one's own to throw away carries it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from urllib.parse import quote

PASSWORD_BYTES = 18


def new_password() -> str:
    """A random password that needs no quoting."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


@dataclass(frozen=True, slots=True)
class Login:
    """A user's name and password."""

    user: str
    password: str = field(repr=False, default_factory=new_password)
    database: str = "admin"
    """Where MongoDB keeps the user; PostgreSQL has no such place."""

    @property
    def userinfo(self) -> str:
        """The part of a connection string before its host."""
        return f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@"
