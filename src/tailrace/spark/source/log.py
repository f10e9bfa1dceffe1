"""A replica set's log seen from afar: where it ends, where to cut it, what is undecided.

What the driver asks before it plans a batch. Nothing here reads what a batch will read:
a place is found by seeks on ``ts``, a limit by a scan that stays on the server, and of
commands only the few words come back that say what was prepared and decided.

All reads are majority reads, of a member that has all up to the majority point that was
told last: one that lags would be short, silently. ``ts`` is the log's key: a seek forwards
costs what reading one document costs, one backwards reads the log from its end on, so
there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bson.timestamp import Timestamp
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Primary

from tailrace.engine.checkup import TRANSACTIONS_GRANT
from tailrace.errors import ServerError
from tailrace.oplog.deployment import Deployment
from tailrace.oplog.losses import history_lost
from tailrace.oplog.tail import GRANT, OPLOG, RAW
from tailrace.raw import spans
from tailrace.spark.source.cuts import Limit
from tailrace.stage.resume import check_history

LOGIN = "a role, any will do: hello needs no more"
GALLOP_BITS = 4
"""A look backwards goes 16 times as far each time."""
TIME_BITS = 64
SIZE_ROUNDS = 3


def timestamp(time: int) -> Timestamp:
    """A cluster time as BSON's own type."""
    return Timestamp(time >> 32, time & 0xFFFF_FFFF)


def time_of(stamp: Timestamp) -> int:
    """BSON's timestamp as a cluster time."""
    return stamp.time << 32 | stamp.inc


class ReplicaSetLog:
    """The port ``cuts.Log`` for one replica set."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self.name = name
        self._deployment = deployment
        self._session = deployment.client.start_session(causal_consistency=True)
        self._oplog = deployment.client.get_database("local").get_collection(
            OPLOG,
            read_concern=ReadConcern("majority"),
            read_preference=deployment.read_preference,
        )

    def reached(self) -> int:
        """The majority point, as the set itself tells it: no entry has to be waited for."""
        said = self._deployment.ask(self._hello, LOGIN)
        stamp = said["lastWrite"]["majorityOpTime"]["ts"]
        self._session.advance_operation_time(stamp)
        point = time_of(stamp)
        return point if self._first_from(point) == point else self.before(point)

    @property
    def clock(self) -> Mapping[str, Any] | None:
        """The ``$clusterTime`` that the set told last, for members that lag far behind."""
        return self._session.cluster_time

    def entry_at(self, time: int) -> bool:
        """Whether this very entry is in the log; an error when the log begins behind it."""
        if self._first_from(time) == time:
            return True
        self._check_history(time)
        return False

    def before(self, time: int) -> int:
        """Some entry before a time, near it, found by looking ever farther back."""
        for bits in range(0, TIME_BITS, GALLOP_BITS):
            found = self._first_from(max(1, time - (1 << bits)))
            if found is not None and found < time:
                return found
        found = self._first_from(1)
        if found is None or found >= time:
            self._check_history(time)
        return found or 1

    def advance(self, start: int, limit: Limit) -> int | None:
        """The entry that fills a limit; the server skips over those before it."""
        count = limit.events
        if limit.size is not None:
            count = self._count_of(start, limit.size, count)
        if count is None:
            return None
        return self._times({"ts": {"$gt": timestamp(start)}}, skip=count - 1)

    def undecided(self, start: int, end: int) -> Sequence[int]:
        """The prepares of a stretch of the log that the stretch does not decide."""
        prepared: set[int] = set()
        decided: set[int] = set()
        for command in self._decisions(start, end):
            if command.get("decided"):
                decided.add(time_of(command["previous"]))
            else:
                prepared.add(time_of(command["ts"]))
        return sorted(prepared - decided)

    def open_at(self, time: int) -> Sequence[int]:
        """What is prepared now, and what was decided since: both, as either may be missed."""
        found = self._deployment.ask(self._prepared_now, TRANSACTIONS_GRANT)
        for command in self._decisions(time, None):
            if command.get("decided") and command.get("previous") is not None:
                found.append(time_of(command["previous"]))
        return sorted(each for each in found if each <= time)

    def oldest(self) -> int:
        """The time of the log's first entry."""
        return self._first_from(0) or 0

    def count(self, start: int, end: int, most: int) -> int:
        """How many entries lie behind ``start``, up to ``end``; ``most`` stands for more."""
        return self._sum(
            [
                {"$match": {"ts": {"$gt": timestamp(start), "$lte": timestamp(end)}}},
                {"$limit": most},
                {"$group": {"_id": None, "sum": {"$sum": 1}}},
            ]
        )

    def first_from(self, time: int) -> int | None:
        """The time of the first entry at or after a time."""
        return self._first_from(time)

    def _hello(self) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._deployment.client.admin.command(
            "hello", read_preference=self._deployment.read_preference
        )
        return answer

    def _first_from(self, time: int) -> int | None:
        return self._times({"ts": {"$gte": timestamp(time)}})

    def _times(self, wanted: Mapping[str, Any], skip: int = 0) -> int | None:
        def ask() -> list[dict[str, Any]]:
            found = self._oplog.find(wanted, {"ts": 1, "_id": 0}, session=self._session)
            return list(found.skip(skip).limit(1))

        found = self._deployment.ask(ask, GRANT)
        return time_of(found[0]["ts"]) if found else None

    def _count_of(self, start: int, size: int, most: int | None) -> int | None:
        """How many entries make up a size; None when all that there is is smaller."""
        count = most
        for _ in range(SIZE_ROUNDS):
            pipeline: list[dict[str, Any]] = [
                {"$match": {"ts": {"$gt": timestamp(start)}}},
                *([{"$limit": count}] if count is not None else []),
                {
                    "$group": {
                        "_id": None,
                        "sum": {"$sum": {"$bsonSize": "$$ROOT"}},
                        "count": {"$sum": 1},
                    }
                },
            ]
            found = self._aggregate(pipeline)
            if not found or found[0]["sum"] <= size:
                return count
            count = max(1, found[0]["count"] * size // found[0]["sum"])
        return count

    def _sum(self, pipeline: list[dict[str, Any]]) -> int:
        found = self._aggregate(pipeline)
        return int(found[0]["sum"]) if found else 0

    def _aggregate(self, pipeline: list[dict[str, Any]]) -> list[dict[str, Any]]:
        def ask() -> list[dict[str, Any]]:
            return list(self._oplog.aggregate(pipeline, session=self._session))

        return self._deployment.ask(ask, GRANT)

    def _decisions(self, start: int, end: int | None) -> list[dict[str, Any]]:
        """What was prepared, committed or aborted in a stretch, in a few words each."""
        stretch = {"$gt": timestamp(start)} | ({"$lte": timestamp(end)} if end is not None else {})
        decided = {"$ifNull": ["$o.commitTransaction", "$o.abortTransaction"]}
        words = {
            "_id": 0,
            "ts": 1,
            "prepared": "$o.prepare",
            "decided": decided,
            "previous": "$prevOpTime.ts",
        }
        return self._aggregate(
            [
                {"$match": {"ts": stretch, "op": "c"}},
                {"$project": words},
                {"$match": {"$expr": {"$or": ["$prepared", "$decided"]}}},
            ]
        )

    def _prepared_now(self) -> list[int]:
        """What the primary knows as prepared; what follows is read behind this answer.

        That collection takes no ``afterClusterTime``, but tells its operation time.
        """
        client = self._deployment.client
        kept = client.get_database("config").get_collection(
            "transactions", read_concern=ReadConcern("majority"), read_preference=Primary()
        )
        with client.start_session(causal_consistency=False) as session:
            found = kept.find({"state": "prepared"}, {"lastWriteOpTime": 1}, session=session)
            times = [time_of(each["lastWriteOpTime"]["ts"]) for each in found]
            if session.operation_time is not None:
                self._session.advance_operation_time(session.operation_time)
        return times

    def _check_history(self, time: int) -> None:
        """The error of a log that lost a time; one that began behind it has lost nothing."""
        oldest = self._deployment.ask(self._oldest_entry, GRANT)
        try:
            check_history(oldest, time)
        except ServerError as error:
            _, start, end = spans(oldest)[b"ts"]
            raise history_lost(time, int.from_bytes(oldest[start:end], "little")) from error

    def _oldest_entry(self) -> bytes:
        oplog = self._oplog.with_options(codec_options=RAW)
        return bytes(next(iter(oplog.find({}, session=self._session).limit(1))).raw)
