"""What a shard refused, said so that somebody can act: which shard, which user, which grant.

The user of a cluster is a user of its config servers. A shard has users of its own, and
does not know that one unless somebody made it there as well.
"""

from __future__ import annotations

from tailrace.errors import PrivilegeError, ServerError, TailraceError
from tailrace.oplog.tail import GRANT

AUTHENTICATION_FAILED = 18
SERVERS_FIELDS = frozenset({"code", "code_name"})


def refusal(error: TailraceError, shard: str, user: str | None) -> TailraceError:
    """A shard's error, with the shard's name in it, and the user's if he was refused."""
    error.fields.setdefault("shard", shard)
    unknown = isinstance(error, ServerError) and error.code == AUTHENTICATION_FAILED
    if not (unknown or isinstance(error, PrivilegeError)):
        return error
    grant = error.fields.get("grant", GRANT)
    who = "without a user" if user is None else f"as the user {user}"
    said = "who is no user there" if unknown else "who may not do it"
    fields = {name: value for name, value in error.fields.items() if name not in SERVERS_FIELDS}
    return PrivilegeError(
        f"shard {shard} cannot be read {who}{'' if user is None else ', ' + said}: grant {grant} "
        "on that shard, or name another user as shard_credentials",
        **{**fields, "grant": grant, "user": user},
    )
