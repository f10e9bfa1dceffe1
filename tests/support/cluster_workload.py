"""A seeded workload over a cluster: sharded and unsharded collections, ranges on the move.

Each writer is one session: its writes follow one another in the cluster's time, and it
keeps what was acknowledged, in its order. Movers move ranges to and fro meanwhile.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tailrace.embedded import ShardedCluster

KEYS = 100
WRITER_KEYS = 1_000_000
"""Of each writer: its number is in every key."""


@dataclass
class Write:
    """An acknowledged write, as its event must show it."""

    namespace: str
    operation: str
    key: int
    writer: int
    number: int


@dataclass
class ClusterWorkload:
    """Writers and movers over three collections of one database."""

    cluster: ShardedCluster
    database: str
    seed: int
    acknowledged: list[list[Write]] = field(default_factory=list)
    moves: int = 0
    errors: list[BaseException] = field(default_factory=list)

    def set_up(self) -> None:
        self.cluster.shard_collection(f"{self.database}.ranged", {"k": 1})
        self.cluster.shard_collection(f"{self.database}.hashed", {"_id": "hashed"})
        self.cluster.insert(f"{self.database}.plain", {"_id": -1})

    def run(self, writers: int, writes: int, moves: int) -> None:
        """Everything at once, with new writers; errors of any part are raised."""
        parts: list[Callable[[], None]] = [lambda: self._move(moves)]
        first = len(self.acknowledged)
        for writer in range(first, first + writers):
            self.acknowledged.append([])
            parts.append(lambda writer=writer: self._write(writer, writes))
        threads = [threading.Thread(target=self._guarded, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            part()
        except BaseException as error:  # noqa: BLE001 - raised by run, in the test's thread
            self.errors.append(error)

    def _write(self, writer: int, writes: int) -> None:
        dice = random.Random(f"{self.seed}/{writer}")
        alive: dict[str, list[int]] = {"ranged": [], "hashed": [], "plain": []}
        for number in range(writes):
            name = dice.choice(list(alive))
            namespace, keys = f"{self.database}.{name}", alive[name]
            operation = dice.choice(["insert", "insert", "update", "update", "delete"])
            if not keys:
                operation = "insert"
            if operation == "insert":
                key = writer * WRITER_KEYS + number
                keys.append(key)
                document = {"_id": key, "k": key % KEYS, "n": number, "w": writer}
                self.cluster.insert(namespace, document)
            else:
                key = dice.choice(keys)
                query = {"_id": key, "k": key % KEYS}
                if operation == "update":
                    change = {"$set": {"n": number, "w": writer}}
                    assert self.cluster.update(namespace, query, change) == 1
                else:
                    keys.remove(key)
                    assert self.cluster.delete(namespace, query) == 1
            self.acknowledged[writer].append(Write(namespace, operation, key, writer, number))

    def _move(self, moves: int) -> None:
        dice = random.Random(f"{self.seed}/mover")
        namespace = f"{self.database}.ranged"
        for _ in range(moves):
            low = dice.randrange(0, KEYS, 25)
            shard = dice.choice(list(self.cluster.shards))
            self.cluster.move_range(namespace, shard, {"k": low}, {"k": low + 25})
            self.moves += 1
