"""Users, passwords and certificates: they open what they should, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from tests.support.dev_servers import DevServer
from tests.support.mongodb import TLS

from tailrace.embedded import ReplicaSet

SOON = {"serverSelectionTimeoutMS": 500}


@pytest.fixture(scope="module")
def guarded() -> Iterator[ReplicaSet]:
    """A set of two with users, and with certificates where the build can have them."""
    with ReplicaSet(2, auth=True, tls=TLS) as replica_set:
        yield replica_set


def reads(uri: str, **options: Any) -> object:
    with MongoClient[dict[str, Any]](uri, **options) as client:
        return client.shop.things.find_one()


def test_the_printed_connection_string_may_do_everything(guarded: ReplicaSet) -> None:
    client = guarded.client()
    client.shop.get_collection("things").insert_one({"_id": 1})
    assert client.shop.things.find_one() == {"_id": 1}
    assert client.local["oplog.rs"].find_one() is not None
    assert client.admin.command("serverStatus")["ok"] == 1


def test_nobody_gets_in_without_a_password(guarded: ReplicaSet) -> None:
    with pytest.raises(OperationFailure) as raised:
        reads(guarded.uri_as(None))
    assert raised.value.code == 13


@pytest.mark.skipif(not TLS, reason="the Windows build has no TLS under Wine")
def test_nobody_gets_in_without_trusting_the_authority(guarded: ReplicaSet) -> None:
    root = guarded.security.root
    assert root is not None
    plain = f"mongodb://{root.userinfo}{guarded.nodes[0].address}/?directConnection=true"
    with pytest.raises(PyMongoError, match=r"connection closed|reset"):
        reads(plain, **SOON)
    with pytest.raises(PyMongoError, match="CERTIFICATE_VERIFY_FAILED"):
        reads(plain, tls=True, **SOON)


def test_a_user_may_do_what_its_roles_say(guarded: ReplicaSet) -> None:
    reader = guarded.add_user("reader", {"role": "read", "db": "shop"})
    client = guarded.client(reader)
    client.shop.things.find_one()
    with pytest.raises(OperationFailure) as raised:
        client.shop.things.insert_one({})
    assert raised.value.code == 13


def test_a_role_can_be_one_action_on_one_collection(guarded: ReplicaSet) -> None:
    resource = {"db": "shop", "collection": "things"}
    finder = guarded.add_role("finder", {"resource": resource, "actions": ["find"]})
    client = guarded.client(guarded.add_user("narrow", finder))
    client.shop.things.find_one()
    with pytest.raises(OperationFailure) as raised:
        client.shop.others.find_one()
    assert raised.value.code == 13


def test_no_password_is_shown_where_nobody_asked_for_it(guarded: ReplicaSet) -> None:
    login = guarded.add_user("shy")
    logs = "".join(node.process.log.read_text() for node in guarded.nodes)
    shown = [repr(guarded), repr(guarded.security), repr(login), repr(guarded.client(login))]
    shown += [*guarded.description(), repr(guarded.nodes), logs]
    for secret in (guarded.security.root, guarded.security.system, login):
        assert secret is not None
        assert not [text for text in shown if secret.password in text]


def test_a_restarted_member_comes_back_with_its_users(guarded: ReplicaSet) -> None:
    guarded.restart(guarded.secondaries()[0])
    guarded.await_members()
    assert len(guarded.secondaries()) == 1


def test_tailrace_dev_up_prints_what_opens_a_guarded_set(dev_up: Callable[..., DevServer]) -> None:
    server = dev_up("mongodb", "--auth", *(["--tls"] if TLS else []))
    password = server.uri.partition("@")[0].rpartition(":")[2]
    assert len(password) > 16
    assert password not in server.said
    assert reads(server.uri) is None
