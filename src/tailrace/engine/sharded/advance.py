"""Moves shards that have nothing to say past a time that others wait for.

A shard without writes repeats its promise for up to 10 s, until it writes its periodic
no-op. Asked to read at a cluster time that it has not reached, it writes one at once:
a read, which needs no right to write, and the shard's own no-op. Nothing is asked while
no event waits, and one shard that does not answer does not keep the others waiting.

Facts: facts/sharded, section 6.
"""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymongo
from bson.timestamp import Timestamp
from pymongo import MongoClient, ReadPreference
from pymongo.errors import PyMongoError

from tailrace.engine.sharded.clock import ClusterClock
from tailrace.engine.sharded.inflow import HeldBack, Inflow
from tailrace.oplog.tail import OPLOG

LOOK_EVERY_S = 1.0
SETTLE_S = 0.01
"""How long events may wait by themselves: most waits end with the next batch."""
ANSWER_S = 10.0
RETRY_S = 0.25
"""Before a shard is asked for the same time again: the no-op has to come through its log."""


class Advancer:
    """A thread that watches a merge, and asks the shards that hold it back."""

    def __init__(self, inflow: Inflow, clock: ClusterClock) -> None:
        self._inflow = inflow
        self._clock = clock
        self._clients: dict[str, MongoClient[Any]] = {}
        self._asked: dict[str, int] = {}
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(64, thread_name_prefix="tailrace-advance")
        self._thread = threading.Thread(target=self._run, name="tailrace-advance", daemon=True)

    def add(self, name: str, client: MongoClient[Any]) -> None:
        """A shard that may be asked."""
        self._clients[name] = client

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        while not self._stopped.is_set():
            held = self._inflow.wait_until_held_back(LOOK_EVERY_S)
            if held is None:
                continue
            self._stopped.wait(SETTLE_S)
            held = self._inflow.wait_until_held_back(0)
            if held is not None and not self._stopped.is_set():
                with contextlib.suppress(RuntimeError):  # the pool was shut down meanwhile
                    self._ask_all(held)

    def _ask_all(self, held: HeldBack) -> None:
        for name in held.behind:
            if self._asked.get(name, 0) < held.until:
                self._asked[name] = held.until
                self._pool.submit(self._ask, name, held)

    def _ask(self, name: str, held: HeldBack) -> None:
        """One shard, to read at a time; a failure is its reader's to tell."""
        try:
            with pymongo.timeout(ANSWER_S):
                self._clock.hear_of(held.until, self._clients[held.witness])
                self._read_at(held.until, self._clients[name])
        except PyMongoError:
            pass
        finally:
            self._stopped.wait(RETRY_S)
            if self._asked.get(name) == held.until:
                self._asked[name] = 0

    def _read_at(self, time: int, client: MongoClient[Any]) -> None:
        at = Timestamp(time >> 32, time & 0xFFFF_FFFF)
        with self._clock.session(client) as session:
            client.local.command(
                "find",
                OPLOG,
                projection={"_id": 0, "ts": 1},
                limit=1,
                singleBatch=True,
                readConcern={"level": "local", "afterClusterTime": at},
                read_preference=ReadPreference.PRIMARY,
                session=session,
            )
