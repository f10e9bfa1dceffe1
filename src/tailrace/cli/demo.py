"""``tailrace demo``: a shop's database on its way into a lake, and nothing gets lost.

Starts a MongoDB of its own and a small shop that writes to it, transactions included;
runs ``tailrace sync`` beside it, kills that with SIGKILL in the middle, and starts it
again; verifies the tables against the database, and asks them two questions. The tables
stay in ``demo-lake``. ``--events`` shows the change events themselves instead.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tailrace.cli.events_demo import show_events
from tailrace.cli.output import EXIT_FAILED, errors_in_one_line
from tailrace.cli.surroundings import check_java, spark_part
from tailrace.embedded import ReplicaSet
from tailrace.errors import OperatorError, OptionError

LAKE = Path("demo-lake")
MARK = ".made-by-tailrace-demo"
PROGRAM = (sys.executable, "-c", "from tailrace.cli.app import main; main()")
PATIENCE_S = 300.0
POLL_S = 0.2
BATCHES_BEFORE_THE_KILL = 2
PAUSE_S = 0.02
"""Between two customers of the shop."""
ITEMS = ("lamp", "chair", "desk", "shelf", "rug")
STOCK = 1_000_000
QUESTIONS = (
    (
        "What was ordered most? From the table of shop.orders, as it is now:",
        "SELECT get_json_object(document, '$.item') AS item, count(*) AS orders FROM orders "
        "GROUP BY item ORDER BY orders DESC, item",
    ),
    (
        "What happened in the shop? From the changes, one row per event:",
        "SELECT coll AS collection, operation, count(*) AS events, "
        "count(txn.number) AS in_transactions FROM changes "
        "GROUP BY coll, operation ORDER BY coll, operation",
    ),
)


def demo(
    events: Annotated[
        bool, typer.Option("--events", help="Show the change events of a few writes instead.")
    ] = False,
) -> None:
    """Sync a shop's MongoDB into lake tables, kill the sync on the way, and verify."""
    if events:
        show_events()
        return
    with errors_in_one_line():
        check_java()
        spark_part("sync")
        console = Console(soft_wrap=True, highlight=False)
        _make_room(LAKE)
        console.print("Starting a MongoDB for this demo ...")
        with ReplicaSet(noop_interval_s=1) as replica_set:
            console.print(f"MongoDB {replica_set.version} at {replica_set.uri}")
            _tell(console, replica_set)


def _make_room(lake: Path) -> None:
    if lake.exists():
        if not (lake / MARK).exists():
            raise OptionError(f"./{lake} exists and is not of an earlier demo: move it away")
        shutil.rmtree(lake)
    lake.mkdir()
    (lake / MARK).touch()


def _tell(console: Console, replica_set: ReplicaSet) -> None:
    uri = replica_set.uri
    with open_shop(replica_set.client()) as shop:
        _step(console, f"A shop takes orders. tailrace sync {uri} --to ./{LAKE}")
        with _sync(uri, "--interval", "1s") as process:
            _wait(lambda: _commits() >= BATCHES_BEFORE_THE_KILL, process)
            _step(console, f"{shop.orders:,} orders so far. kill -9 of the sync, in the middle")
            process.send_signal(signal.SIGKILL)
        before = shop.orders
        _wait(lambda: shop.orders > before + len(ITEMS))
    _step(console, f"{shop.orders:,} orders, and the shop closes. The sync goes on where it was")
    with _sync(uri, "--once") as process:
        if process.wait(PATIENCE_S):
            raise OperatorError(f"the sync ended with status {process.returncode}")
    _verify(console, uri)
    console.print()
    console.print(f"The MongoDB is gone; the tables stay in ./{LAKE}: any Delta reader reads them.")
    console.print("Next: docs/guides/lake.md, five minutes with a database of your own.")


def _verify(console: Console, uri: str) -> None:
    _step(console, f"tailrace verify {uri} --to ./{LAKE}")
    verify = spark_part("verify")
    spark = spark_part("session").open_session()
    report = verify.verify(spark, verify.VerifyOptions(uri=uri, to=str(LAKE)), lambda table: None)
    for table in report.tables:
        console.print(
            f"  {table.namespace:<12} {table.documents:>8,} documents  "
            f"{table.differences or 'none'} differ"
        )
    if not report.equal:
        raise typer.Exit(EXIT_FAILED)
    console.print(Text("Every document is in the tables, byte for byte.", "green"))
    for name, path in (("orders", "current/shop.orders"), ("changes", "changes")):
        spark.read.format("delta").load(str(LAKE.absolute() / path)).createOrReplaceTempView(name)
    for question, query in QUESTIONS:
        _step(console, question)
        console.print(f"  {query}", markup=False)
        console.print(_shown(spark.sql(query)))
    spark.stop()


def _shown(answer: Any) -> Table:
    table = Table(*answer.columns)
    for row in answer.collect():
        table.add_row(*map(str, row))
    return table


def _step(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, "bold"))


@contextlib.contextmanager
def _sync(uri: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """``tailrace sync`` in a process of its own."""
    command = [*PROGRAM, "sync", uri, "--to", str(LAKE), *words]
    process = subprocess.Popen(command, env=os.environ)  # noqa: S603  (ourselves)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _commits() -> int:
    """How many batches are in."""
    return len(list((LAKE / "changes" / "_delta_log").glob("*.json")))


def _wait(done: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        if process is not None and process.poll() is not None:
            raise OperatorError(f"the sync ended with status {process.returncode}")
        if time.monotonic() > deadline:
            raise OperatorError(f"nothing happened for {PATIENCE_S:g} s")
        time.sleep(POLL_S)


class Shop:
    """Customers who order: an order and the stock in one transaction, and what follows."""

    def __init__(self, client: MongoClient[dict[str, Any]]) -> None:
        self.orders = 0
        self._client = client
        self._chance = random.Random(1)  # noqa: S311  (customers)
        self._closing = threading.Event()
        client.shop.stock.insert_many([{"_id": item, "left": STOCK} for item in ITEMS])

    def run(self) -> None:
        """Serve customers until the shop closes."""
        while not self._closing.wait(PAUSE_S):
            with contextlib.suppress(PyMongoError):
                self._serve()

    def close(self) -> None:
        """Serve no more."""
        self._closing.set()

    def _serve(self) -> None:
        shop, chance = self._client.shop, self._chance
        item, count, number = chance.choice(ITEMS), chance.randint(1, 5), self.orders
        with self._client.start_session() as session, session.start_transaction():
            order = {"_id": number, "item": item, "count": count, "state": "new"}
            shop.orders.insert_one(order, session=session)
            shop.stock.update_one({"_id": item}, {"$inc": {"left": -count}}, session=session)
        self.orders += 1
        if number > len(ITEMS):
            earlier = {"_id": chance.randrange(number)}
            shop.orders.update_one(earlier, {"$set": {"state": "sent"}, "$push": {"log": "sent"}})
        if number % 20 == 19:
            shop.orders.delete_one({"_id": chance.randrange(number)})


@contextlib.contextmanager
def open_shop(client: MongoClient[dict[str, Any]]) -> Iterator[Shop]:
    """A shop that is open for a while."""
    shop = Shop(client)
    thread = threading.Thread(target=shop.run)
    thread.start()
    try:
        yield shop
    finally:
        shop.close()
        thread.join()
