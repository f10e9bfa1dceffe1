"""What a stream reads from the log is what the server's own filter names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from tailrace.event.reference import Source, names_read
from tailrace.event.shape import Shape, parse_version

OF_TRANSACTIONS = {"applyOps", "applyOps.ns", "commitTransaction", "partialTxn", "prepare"}
PART_OF_RENAME = {"to"}


def filters(explained: Any) -> Iterator[Any]:
    """The filter of the oplog, wherever this release's explain has it."""
    if isinstance(explained, dict):
        for name, value in explained.items():
            if name == "parsedQuery":
                yield value
            else:
                yield from filters(value)
    elif isinstance(explained, list):
        for value in explained:
            yield from filters(value)


def names(query: Any, within: str) -> set[str]:
    """The fields of ``o`` or ``o2`` that a filter asks for, and the types of no-ops."""
    found: set[str] = set()
    if isinstance(query, dict):
        for name, value in query.items():
            if name == "o2.type":
                found |= set(value["$in"]) if within == "o2." else set()
            elif name.startswith(within):
                found.add(name.removeprefix(within))
            found |= names(value, within)
    elif isinstance(query, list):
        for value in query:
            found |= names(value, within)
    return found


@pytest.mark.parametrize("system", [False, True])
@pytest.mark.parametrize("scope", ["collection", "database", "cluster"])
def test_the_servers_filter_names_what_the_reference_does(
    mongodb_client: MongoClient[dict[str, Any]],
    database: Database[dict[str, Any]],
    scope: str,
    system: bool,
) -> None:
    database.create_collection("things")
    stage: dict[str, Any] = {"showExpandedEvents": True, "showSystemEvents": system}
    source = database
    if scope == "cluster":
        source, stage = mongodb_client.admin, {**stage, "allChangesForCluster": True}
    aggregate = {
        "aggregate": "things" if scope == "collection" else 1,
        "pipeline": [{"$changeStream": stage}],
        "cursor": {},
    }
    explained = source.command("explain", aggregate, verbosity="queryPlanner")
    asked = list(filters(explained["stages"][0]))
    assert asked, "explain shows no filter"
    version = parse_version(mongodb_client.server_info()["version"])
    shape = Shape(version, expanded=True, system=system)
    commands = names(asked, "o.") - OF_TRANSACTIONS - PART_OF_RENAME
    ours = {name.decode() for name in names_read(Source.COMMAND, shape, scope)}
    assert commands == ours - {"upgradeDowngradeViewlessTimeseries"}
    no_ops = {name.decode() for name in names_read(Source.NO_OP, shape, scope)}
    assert names(asked, "o2.") == no_ops
