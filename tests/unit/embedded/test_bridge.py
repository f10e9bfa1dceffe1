"""How a bridge tells a member's call from a client's, and reads a first message whole."""

from __future__ import annotations

import socket
import struct
import threading

import bson
import pytest

from tailrace.embedded.bridge import caller_of, first_message


def message(document: dict[str, object]) -> bytes:
    body = struct.pack("<I", 0) + b"\x00" + bson.encode(document)
    return struct.pack("<iiii", 16 + len(body), 1, 0, 2013) + body


HELLO = {"hello": 1, "hostInfo": "some.host:20007", "$db": "admin"}


def test_a_member_says_its_port() -> None:
    assert caller_of(message(HELLO)) == 20007


@pytest.mark.parametrize(
    "document",
    [
        {"hello": 1, "client": {"driver": {"name": "PyMongo"}}},
        {"hello": 1, "hostInfo": "no port"},
        {"hello": 1, "hostInfo": 20007},
        {"find": "hostInfo", "filter": {}},
    ],
)
def test_whoever_does_not_say_it_is_a_client(document: dict[str, object]) -> None:
    assert caller_of(message(document)) is None


@pytest.mark.parametrize("size", [1, 7, 16, 1 << 16])
def test_a_first_message_is_read_whole_however_it_comes(size: int) -> None:
    sent = message({**HELLO, "padding": "x" * 300})
    near, far = socket.socketpair()
    with near, far:

        def send() -> None:
            for at in range(0, len(sent), size):
                near.sendall(sent[at : at + size])

        sender = threading.Thread(target=send)
        sender.start()
        received = first_message(far)
        sender.join()
    assert received == sent


def test_a_caller_that_hangs_up_early_leaves_what_it_sent() -> None:
    near, far = socket.socketpair()
    with near, far:
        near.sendall(message(HELLO)[:20])
        near.close()
        assert first_message(far) == message(HELLO)[:20]
