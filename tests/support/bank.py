"""A bank: accounts in several collections, and transfers that leave its sum as it is."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError
from pymongo.write_concern import WriteConcern

ACCOUNTS = 100
BALANCE = 1_000
BRANCHES = ("north", "south", "east")
MAJORITY = WriteConcern("majority")
PAUSE_S = 0.01
HELD_TRANSFERS = 15
"""So many others happen while a prepared transfer waits for its commit."""


class Bank:
    """Transfers between the accounts of a database, by a thread of its own."""

    def __init__(self, client: MongoClient[dict[str, Any]], database: str, seed: int) -> None:
        self.client = client
        self.branches = [client[database][name] for name in BRANCHES]
        self.transfers = 0
        self.held = 0
        self._chance = random.Random(seed)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run)
        for number in range(ACCOUNTS):
            # Negative keys: a prepared key must not be the one behind a range that is read.
            account = {"_id": -number - 1, "balance": BALANCE}
            self._branch(number).insert_one(account)

    def __enter__(self) -> Bank:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    @property
    def names(self) -> list[str]:
        """The namespaces of the branches."""
        return [branch.full_name for branch in self.branches]

    def _branch(self, number: int) -> Any:
        return self.branches[number % len(self.branches)]

    def _run(self) -> None:
        while not self._closing.wait(PAUSE_S):
            with contextlib.suppress(PyMongoError):
                if self.transfers % 40 == 20:
                    self._hold()
                self._transfer()

    def _transfer(self, apart_from: frozenset[int] = frozenset()) -> None:
        with self.client.start_session() as session, session.start_transaction():
            self._move(session, apart_from)
        self.transfers += 1

    def _move(self, session: ClientSession, apart_from: frozenset[int]) -> frozenset[int]:
        free = [number for number in range(ACCOUNTS) if number not in apart_from]
        pair = self._chance.sample(free, 2)
        amount = self._chance.randint(1, 50)
        for number, change in zip(pair, (-amount, amount), strict=True):
            found = self._branch(number).update_one(
                {"_id": -number - 1}, {"$inc": {"balance": change}}, session=session, hint="_id_"
            )
            assert found.modified_count == 1
        return frozenset(pair)

    def _hold(self) -> None:
        """A transfer that is prepared by hand, and committed when others have passed it."""
        admin = self.client.admin
        with self.client.start_session() as session:
            session.start_transaction(write_concern=MAJORITY)
            pair = self._move(session, frozenset())
            said = admin.command(
                "prepareTransaction", 1, session=session, writeConcern={"w": "majority"}
            )
            for _ in range(HELD_TRANSFERS):
                self._transfer(pair)
            admin.command(
                "commitTransaction",
                1,
                commitTimestamp=said["prepareTimestamp"],
                session=session,
                writeConcern={"w": "majority"},
            )
            self.held += 1
