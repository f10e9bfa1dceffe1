"""How a stream is doing, for Prometheus to fetch: counters and gauges over HTTP.

Served on the loopback address only, while the stream is read. The text is made when it
is asked for; reading the stream is never held up by it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tailrace.engine import ShardStatus
from tailrace.errors import OptionError, TailraceError

LOOPBACK = "127.0.0.1"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHARD_GAUGES: tuple[tuple[str, str, Callable[[ShardStatus], int]], ...] = (
    ("behind_seconds", "Behind the shard that has got farthest.", lambda shard: shard.behind_s),
    ("promise_seconds", "The cluster time it has reached.", lambda shard: shard.promise >> 32),
    ("waiting_events", "Events that wait for other shards.", lambda shard: shard.waiting_events),
    ("waiting_bytes", "Bytes that wait for other shards.", lambda shard: shard.waiting_bytes),
)


class Metrics:
    """One stream's numbers."""

    def __init__(
        self,
        lag: Callable[[], tuple[int, int] | None],
        shards: Callable[[], Sequence[ShardStatus]],
    ) -> None:
        self._lag = lag
        self._shards = shards
        self._events = 0

    def add(self, events: int) -> None:
        """Count events."""
        self._events += events

    def text(self) -> str:
        """All numbers in Prometheus's text format."""
        lines = _metric("tailrace_events_total", "counter", "Events written.", [("", self._events)])
        with contextlib.suppress(TailraceError):  # the next batch says what is wrong
            behind_s, left_s = self._lag() or (None, None)
            if behind_s is not None and left_s is not None:
                lines += _gauge("tailrace_lag_seconds", "Behind the log's end.", behind_s)
                lines += _gauge("tailrace_oplog_left_seconds", "Until the log forgets.", left_s)
        shards = self._shards()
        for name, help_text, value in SHARD_GAUGES:
            rows = [(f'{{shard="{shard.name}"}}', value(shard)) for shard in shards]
            if rows:
                lines += _metric(f"tailrace_shard_{name}", "gauge", help_text, rows)
        return "\n".join(lines) + "\n"

    @contextlib.contextmanager
    def served(self, port: int) -> Iterator[int]:
        """Answer on a port of this machine inside the block; 0 is a free one."""
        metrics = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = metrics.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_words: object) -> None:
                """Say nothing: standard error is for the status line."""

        try:
            server = ThreadingHTTPServer((LOOPBACK, port), Answer)
        except OSError as error:
            raise OptionError(
                f"--metrics-port {port}: {error.strerror}", option="--metrics-port"
            ) from error
        with server:
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield server.server_port
            finally:
                server.shutdown()


def _gauge(name: str, help_text: str, value: int) -> list[str]:
    return _metric(name, "gauge", help_text, [("", value)])


def _metric(name: str, kind: str, help_text: str, rows: Sequence[tuple[str, int]]) -> list[str]:
    head = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    return [*head, *(f"{name}{labels} {value}" for labels, value in rows)]
