"""How the nodes of a set or cluster know each other, and how clients get in.

With ``auth`` the nodes share a key file, and there is one user who may do everything.
With ``tls`` every connection is encrypted, under an authority of our own. What a
client needs comes as PyMongo's options, or as parts of a connection string.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tailrace.embedded.binaries import Mongod
from tailrace.embedded.certificates import Certificates, make_certificates
from tailrace.embedded.login import Login

ROOT = "root"
ROOT_ROLES = ("root",)
SYSTEM, SYSTEM_DATABASE = "__system", "local"
"""The servers' own user: whoever has the key file is it, before there are other users."""
KEY_BYTES = 96


@dataclass(frozen=True, slots=True)
class Security:
    """The secrets of one set or cluster; all None when it is open."""

    key_file: Path | None = None
    system: Login | None = None
    """The user that the servers are to each other, who may do what no other may."""
    root: Login | None = None
    """The user that people are."""
    certificates: Certificates | None = None

    @property
    def guarded(self) -> bool:
        """Whether a client needs anything of it."""
        return self != Security()

    def server_words(self, build: Mongod) -> list[str]:
        """What stands on a node's command line."""
        words: list[str] = []
        if self.key_file is not None:
            words += ["--keyFile", build.path(self.key_file)]
        if self.certificates is not None:
            words += ["--tlsMode", "requireTLS", "--tlsAllowConnectionsWithoutCertificates"]
            words += [
                "--tlsCertificateKeyFile",
                build.path(self.certificates.certificate_and_key),
            ]
            words += ["--tlsCAFile", build.path(self.certificates.authority)]
        return words

    def client_options(self, login: Login | None) -> dict[str, Any]:
        """What PyMongo must be given; without a login, what it is without a user."""
        options = self._transport()
        if login is not None:
            options |= {"username": login.user, "password": login.password}
            options["authSource"] = login.database
        return options

    def uri(self, hosts: str, login: Login | None, **parameters: Any) -> str:
        """A connection string, with the password in it where there is one."""
        userinfo = "" if login is None else login.userinfo
        source = {} if login is None else {"authSource": login.database}
        query = urlencode(_as_text({**parameters, **source, **self._transport()}), quote_via=quote)
        return f"mongodb://{userinfo}{hosts}/?{query}"

    def _transport(self) -> dict[str, Any]:
        if self.certificates is None:
            return {}
        return {"tls": True, "tlsCAFile": str(self.certificates.authority)}


def make_security(folder: Path, *, auth: bool, tls: bool) -> Security:
    """Make the secrets that are asked for, as files in this folder."""
    certificates = make_certificates(folder) if tls else None
    if not auth:
        return Security(certificates=certificates)
    key = secrets.token_hex(KEY_BYTES)
    key_file = folder / "cluster.key"
    key_file.touch(mode=0o600)
    key_file.write_text(key)
    system = Login(SYSTEM, key, SYSTEM_DATABASE)
    return Security(key_file=key_file, system=system, root=Login(ROOT), certificates=certificates)


def _as_text(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in parameters.items()
    }
