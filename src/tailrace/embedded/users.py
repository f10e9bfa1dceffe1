"""Users and roles of a deployment, made so that every member knows them on return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import MongoClient

from tailrace.embedded.login import Login

Grant = str | Mapping[str, str]
"""A role's name in the user's own database, or ``{"role": …, "db": …}``."""
BY_ALL = {"w": "majority", "wtimeout": 60_000}


def create_user(client: MongoClient[dict[str, Any]], login: Login, roles: Sequence[Grant]) -> None:
    """Make a user with these roles."""
    client[login.database].command(
        "createUser", login.user, pwd=login.password, roles=list(roles), writeConcern=BY_ALL
    )


def create_role(
    client: MongoClient[dict[str, Any]],
    role: str,
    privileges: Sequence[Mapping[str, Any]],
    roles: Sequence[Grant],
) -> None:
    """Make a role in ``admin``, of privileges and other roles."""
    client.admin.command(
        "createRole", role, privileges=list(privileges), roles=list(roles), writeConcern=BY_ALL
    )
