"""Transactions of made-up logs: in order, given back when they end, and never endless."""

from __future__ import annotations

import bson
import pytest
from bson import Timestamp
from tests.support.made_logs import START, transaction

import tailrace
from tailrace.errors import BadArchive
from tailrace.event.shape import parse_version
from tailrace.oplog.entry import Entry
from tailrace.stage.lookups import NoLookups
from tailrace.stage.options import Starts, parse_options
from tailrace.stage.shard import ShardStream

PARTS = list(transaction(START, entries=5, operations=3, document_bytes=10))
LARGE = list(transaction(START, entries=4, operations=2, document_bytes=300_000))


@pytest.mark.parametrize("parts", [PARTS, LARGE], ids=["small", "large"])
def test_the_operations_of_a_transaction_come_in_order(parts: list[bytes]) -> None:
    entries = [bson.decode(part) for part in parts]
    keys = [each["o"]["_id"] for entry in entries for each in entry["o"]["applyOps"]]
    events = list(tailrace.replay(b"".join(parts)))
    assert [event["documentKey"]["_id"] for event in events] == keys
    tokens = [event["_id"]["_data"] for event in events]
    assert tokens == sorted(tokens)


class Forgetting(NoLookups):
    """Says which transactions it was told to forget."""

    def __init__(self) -> None:
        self.forgotten: list[int] = []

    def forget(self, entry: Entry) -> None:
        self.forgotten.append(entry.time)


def test_a_transaction_that_ended_before_the_start_is_forgotten() -> None:
    lookups = Forgetting()
    starts = Starts(start_at_operation_time=Timestamp(START + 1, 1))
    stream = ShardStream(parse_options(None, None, parse_version("6.0"), starts=starts), lookups)
    assert list(stream.run(PARTS)) == []
    assert lookups.forgotten == [Entry(PARTS[-1]).time]


@pytest.mark.parametrize("to", [2, 4], ids=["itself", "a later one"])
def test_a_chain_that_goes_in_circles_is_a_broken_archive(to: int) -> None:
    second = bson.decode(PARTS[1])
    second["prevOpTime"]["ts"] = Timestamp(START, to)
    with pytest.raises(BadArchive, match="back in time"):
        list(tailrace.replay(b"".join([PARTS[0], bson.encode(second), *PARTS[2:]])))
