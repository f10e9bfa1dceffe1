"""Everything that happens to a cluster, once: writes, moves, transactions, and all its DDL.

The same kinds of steps that the recorded clusters went through, against whatever
servers are at hand, so that what they log can be compared with what they show.
"""

from __future__ import annotations

import itertools
import threading

from tailrace.embedded import ShardedCluster

WRITE_EVERY_S = 0.05
KEEP = "keep"
"""The database that is left at the end; the other one is dropped."""


class ClusterScenario:
    """One run of the scenario."""

    def __init__(self, cluster: ShardedCluster, prefix: str) -> None:
        self.cluster = cluster
        self.gone, self.kept = f"{prefix}_gone", f"{prefix}_{KEEP}"
        self._numbers = itertools.count(1)

    def set_up(self) -> None:
        """Databases and collections."""
        cluster = self.cluster
        cluster.create_database(self.gone, "s1")
        cluster.create_database(self.kept, "s2")
        cluster.shard_collection(f"{self.gone}.t", {"k": 1})
        cluster.shard_collection(f"{self.gone}.ab", {"a": 1, "b": 1})
        cluster.shard_collection(f"{self.kept}.h", {"_id": "hashed"})
        images = {"changeStreamPreAndPostImages": {"enabled": True}}
        cluster.coll_mod(f"{self.kept}.h", **images)

    def write(self, count: int = 8) -> None:
        """A few writes of every kind, all over."""
        cluster = self.cluster
        for _ in range(count):
            n = next(self._numbers)
            cluster.insert(f"{self.gone}.t", {"_id": n, "k": n * 37 % 100, "z": n, "l": [1, 2]})
            cluster.insert(f"{self.gone}.ab", {"_id": n, "a": n * 31 % 80, "b": n, "r": n})
            cluster.insert(f"{self.kept}.h", {"_id": n, "n": n})
            cluster.insert(f"{self.gone}.u", {"_id": n})
            cluster.update(f"{self.gone}.t", {"_id": n, "k": n * 37 % 100}, {"$set": {"l.1": 5}})
            cluster.update(f"{self.kept}.h", {"_id": n}, {"$set": {"s": "x", "deep": {"x": 1}}})
            if n % 3 == 0:
                cluster.update(f"{self.kept}.h", {"_id": n}, {"n": -n})
                cluster.delete(f"{self.gone}.ab", {"_id": n, "a": n * 31 % 80, "b": n})

    def run(self, *, reshards: bool) -> None:
        """All of it, in a fixed order."""
        self.write()
        self._moves()
        self._transactions()
        added = self.cluster.add_shard().name
        self.write(3)
        self.cluster.move_range(f"{self.gone}.t", added, {"k": 75})
        self.write(6)
        self._ddl(reshards=reshards)

    def _moves(self) -> None:
        cluster, t = self.cluster, f"{self.gone}.t"
        cluster.split(t, {"k": 50})
        cluster.move_range(t, "s2", {"k": 50})
        cluster.move_range(f"{self.gone}.ab", "s2", {"a": 40, "b": 0})
        self.write(5)
        cluster.move_range(t, "s1", {"k": 50}, {"k": 75})
        self.write(5)

    def _transactions(self) -> None:
        cluster, t = self.cluster, f"{self.gone}.t"
        with cluster.transaction() as both:
            both.insert(t, {"_id": -1, "k": -300}, {"_id": -2, "k": 99.5})
            both.insert(f"{self.kept}.h", {"_id": -3})
            both.commit()
        with cluster.transaction() as first, cluster.transaction() as second:
            first.insert(t, {"_id": -11, "k": -301}, {"_id": -12, "k": 98.5})
            second.insert(t, {"_id": -21, "k": -302}, {"_id": -22, "k": 97.5})
            first.prepare()
            second.prepare()
            second.commit_prepared()
            first.commit_prepared()
        with cluster.transaction() as never:
            never.insert(t, {"_id": -31, "k": -303}, {"_id": -32, "k": 96.5})
            never.prepare()
            never.abort()

    def _ddl(self, *, reshards: bool) -> None:
        cluster, gone = self.cluster, self.gone
        cluster.create_index(f"{gone}.t", {"k": 1, "z": 1})
        cluster.refine(f"{gone}.t", {"k": 1, "z": 1})
        cluster.coll_mod(f"{gone}.t", validator={"_id": {"$exists": True}})
        cluster.create_index(f"{gone}.t", {"z": 1})
        cluster.drop_index(f"{gone}.t", "z_1")
        if reshards:
            self._reshard()
        cluster.rename(f"{gone}.u", f"{gone}.u2")
        cluster.drop(f"{gone}.u2")
        cluster.rename(f"{gone}.ab", f"{gone}.ab2")
        cluster.drop(f"{gone}.t")
        cluster.shard_collection(f"{gone}.t", {"_id": 1})
        cluster.drop_database(gone)
        cluster.insert(f"{self.kept}.h", {"_id": "last"})

    def _reshard(self) -> None:
        """With writes going on: 7.0 takes long to see that nothing is left to copy else."""
        done = threading.Event()

        def go_on_writing() -> None:
            for n in itertools.count(100_000):
                if done.wait(WRITE_EVERY_S):
                    return
                self.cluster.insert(f"{self.kept}.h", {"_id": n})

        writer = threading.Thread(target=go_on_writing)
        writer.start()
        try:
            self.cluster.reshard(f"{self.gone}.ab", {"r": 1})
        finally:
            done.set()
            writer.join()
