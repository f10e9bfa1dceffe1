"""Free ports on the loopback address.

They are taken from below the range that systems give to outgoing connections, so
that a server which was stopped finds its port still free when it is started again.
"""

from __future__ import annotations

import random
import socket

from tailrace.errors import OptionError

LOOPBACK = "127.0.0.1"
LOWEST, HIGHEST = 15_000, 32_000
ATTEMPTS = 200

_random = random.SystemRandom()


def free_port() -> int:
    """A port that nobody listens on now."""
    for _ in range(ATTEMPTS):
        port = _random.randrange(LOWEST, HIGHEST)
        if is_free(port):
            return port
    raise OSError(f"no free port on {LOOPBACK} between {LOWEST} and {HIGHEST}")


def chosen_port(port: int | None) -> int:
    """The port that was asked for, which must be free, or any free one."""
    if port is None:
        return free_port()
    if not is_free(port):
        raise OptionError(f"port {port} is taken", option="port")
    return port


def is_free(port: int) -> bool:
    """Whether a server could listen on this port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether somebody accepts connections on this port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True
