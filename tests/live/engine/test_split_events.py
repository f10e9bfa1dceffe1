"""Events that are too large for one reply: fragments, their tokens, and going on from each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from tests.support.change_streams import (
    Seen,
    differences,
    engine_stream,
    now,
    server_stream,
    settle,
)

from tailrace.embedded import ReplicaSet
from tailrace.event.shape import parse_version
from tailrace.stage.split import MAX_BYTES

Client = MongoClient[dict[str, Any]]
SPLIT = {"$changeStreamSplitLargeEvent": {}}
IMAGES = {"fullDocument": "updateLookup", "fullDocumentBeforeChange": "whenAvailable"}
MEBIBYTE = 1 << 20
SPLITS_SINCE = (6, 0, 9)


@dataclass
class Workload:
    """Writes to one collection, some of them large, and the streams over them."""

    client: Client
    namespace: str
    start: bson.Timestamp
    until: bson.Timestamp
    splits: bool

    def server(self, pipeline: list[dict[str, Any]], **start: Any) -> Seen:
        return server_stream(
            self.client, self.namespace, self.options(start), until=self.until,
            pipeline=pipeline, batch_size=1,
        )  # fmt: skip

    def engine(self, pipeline: list[dict[str, Any]], **start: Any) -> Seen:
        return engine_stream(
            self.client, self.namespace, self.options(start), until=self.until, pipeline=pipeline
        )

    def options(self, start: dict[str, Any]) -> dict[str, Any]:
        return {**IMAGES, **(start or {"startAtOperationTime": self.start})}

    def both(self, pipeline: list[dict[str, Any]], **start: Any) -> tuple[Seen, Seen]:
        return self.engine(pipeline, **start), self.server(pipeline, **start)


@pytest.fixture(scope="module")
def workload() -> Iterator[Workload]:
    """A set of its own, with room for large updates; small writes where nothing is split."""
    with ReplicaSet(cache_gb=1.0) as replica_set:
        client = replica_set.client()
        unit = MEBIBYTE if parse_version(replica_set.version) >= SPLITS_SINCE else 1
        database = client["test_split"]
        database.create_collection("c", changeStreamPreAndPostImages={"enabled": True})
        start = now(client)
        database.c.insert_one({"_id": "small"})
        database.c.insert_one({"_id": "large", "pad": "a" * (8 * unit), "n": 1})
        database.c.update_one({"_id": "large"}, {"$set": {"n": 2, "more": "b" * unit}})
        database.c.replace_one({"_id": "large"}, {"pad": "c" * (9 * unit)})
        database.c.update_one({"_id": "small"}, {"$set": {"n": 3}})
        yield Workload(client, "test_split.c", start, settle(client), splits=unit > 1)


def check(ours: Seen, theirs: Seen) -> None:
    assert not differences(ours.events, theirs.events)
    assert ours.error == theirs.error


def test_a_large_event_comes_in_the_servers_fragments(workload: Workload) -> None:
    ours, theirs = workload.both([SPLIT])
    check(ours, theirs)
    if workload.splits:
        assert any("splitEvent" in bson.decode(event) for event in ours.events)
    else:
        assert theirs.error == (40324, "Location40324")


def test_behind_every_fragment_comes_exactly_the_rest(workload: Workload) -> None:
    if not workload.splits:
        return
    events = workload.server([SPLIT]).events
    for place, event in enumerate(events):
        token = bson.decode(event)["_id"]
        ours = workload.engine([SPLIT], startAfter=token)
        assert not differences(ours.events, events[place + 1 :])


@pytest.mark.parametrize(
    "pipeline",
    [
        [],
        [{"$project": {"fullDocumentBeforeChange": 0}}, SPLIT],
        [{"$match": {"operationType": "delete"}}, SPLIT],
        [{"$addFields": {"more": "$fullDocument"}}, SPLIT],
        [{"$addFields": {"more": ["$fullDocument", "$fullDocument"]}}, SPLIT],
    ],
)
def test_another_split_than_the_tokens_ends_as_the_servers(
    workload: Workload, pipeline: list[dict[str, Any]]
) -> None:
    if not workload.splits:
        return
    fragments = [
        token
        for event in workload.server([SPLIT]).events
        if "splitEvent" in bson.decode(event) and (token := bson.decode(event)["_id"])
    ]
    for token in (fragments[0], fragments[-1]):
        check(*workload.both(pipeline, resumeAfter=token))


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_an_event_is_split_from_the_servers_size_on(workload: Workload, over: int) -> None:
    if not workload.splits:
        return
    fields = ["operationType", "fullDocument"]
    bare = [{"$match": {"operationType": "replace"}}, {"$project": dict.fromkeys(fields, 1)}]
    event = workload.engine([*bare, SPLIT]).events[0]
    token_bytes = len(bson.encode(bson.decode(event)["_id"]))
    # {pad: "..."}: type, name, zero, length, text, zero
    missing = MAX_BYTES - token_bytes - len(event) - len("xpad\0llll\0") + over
    padding = [{"$addFields": {"pad": "p" * missing}}]
    ours, theirs = workload.both([*bare, *padding, SPLIT])
    check(ours, theirs)
    assert ("splitEvent" in bson.decode(ours.events[0])) == (over > 0)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_fragments_are_filled_as_the_server_fills_them(workload: Workload, over: int) -> None:
    if not workload.splits:
        return
    only = [{"$match": {"operationType": "replace"}}, {"$project": {"fullDocument": 1}}]
    event = workload.engine([*only, SPLIT]).events[0]
    token = bson.encode(bson.decode(event)["_id"])
    field = len(event) - len(token) - len("x_id\0") - 5
    # The fragment: its token, what is known of the split, both again as the sort key.
    fragment_token = len(token) + 2
    head = len(bson.encode({"_id": {}, "splitEvent": {"fragment": 1, "of": 1}, "$sortKey": [{}]}))
    head += 2 * (fragment_token - 5)
    missing = MAX_BYTES - len(token) - head - field - len("xpad\0llll\0") + over
    stages = [*only, {"$addFields": {"pad": "p" * missing, "z": "$$ROOT"}}, SPLIT]
    check(*workload.both(stages))


def test_a_field_that_fits_into_no_fragment_ends_the_stream(workload: Workload) -> None:
    if not workload.splits:
        return
    large = [{"$addFields": {"pads": ["$fullDocument", "$fullDocumentBeforeChange"]}}, SPLIT]
    ours, theirs = workload.both([{"$match": {"operationType": "replace"}}, *large])
    assert ours.error == theirs.error
    assert ours.error is not None


@pytest.mark.parametrize(
    "pipeline",
    [
        [{"$changeStreamSplitLargeEvent": {"a": 1}}],
        [{"$changeStreamSplitLargeEvent": 1}],
        [SPLIT, SPLIT],
        [SPLIT, {"$match": {}}],
        [SPLIT, {"$limit": 1}],
    ],
)
def test_a_wrong_split_stage_is_refused_as_the_server_does(
    workload: Workload, pipeline: list[dict[str, Any]]
) -> None:
    ours, theirs = workload.both(pipeline)
    assert ours.error == theirs.error
    assert ours.error is not None
