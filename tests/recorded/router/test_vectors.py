"""The server's own cases of the merge: when an event is ready, and where the stream then is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.testdata import shared_json

from tailrace.router import Merge


@dataclass
class Event:
    """An event with nothing but its token."""

    token: bytes
    type_bits: bytes = b""


def vector(name: str) -> dict[str, Any]:
    found = {each["name"]: each for each in shared_json("vectors/sharded_merge.json")["vectors"]}
    return dict(found[f"SortedTailableCursor{name}"])


def data(token: Mapping[str, str]) -> bytes:
    return token["_data"].encode()


def is_ready(merge: Merge[Event]) -> bool:
    waiting, floor = merge.next_token, min(promise for promise, _ in merge.promises.values())
    return waiting is not None and waiting <= floor


def test_an_event_waits_for_the_shard_with_the_lower_promise() -> None:
    case = vector("NotReadyIfRemoteHasLowerPostBatchResumeToken")
    merge: Merge[Event] = Merge((b"", b""))
    for remote in case["remotes"]:
        merge.add(remote["id"], (b"", b""))
        events = [Event(data(event["sortKey"])) for event in remote["batch"]]
        merge.feed(remote["id"], events, (data(remote["pbrt"]), b""))
    assert list(merge.ready()) == []
    assert case["expect"] == {"ready": False}


def test_a_new_shard_comes_in_behind_or_before_what_waits() -> None:
    for order in ("After", "Before"):
        merge: Merge[Event] = Merge((b"", b""))
        merge.add("A", (b"", b""))
        leaving: Iterator[tuple[str, Event]] = iter(())
        for step in vector(f"NewShardOrdered{order}Existing")["steps"]:
            if "batch" in step:
                batch = step["batch"]
                events = [Event(data(event)) for event in batch["events"]]
                merge.feed(batch["remote"], events, (data(batch["pbrt"]), b""))
                leaving = merge.ready()
            elif "addRemote" in step:
                merge.add(step["addRemote"], (data(step["pbrt"]), b""))
            else:
                assert next(leaving)[1].token == data(step["next"])
            assert is_ready(merge) is step["ready"]


def test_the_place_is_the_smallest_promise() -> None:
    steps = vector("ReturnsHighWaterMarkSortKey")["steps"]
    merge: Merge[Event] = Merge((b"", b""))
    for name in steps[0]["pbrts"]:
        merge.add(name, (b"", b""))
    for step in steps:
        for name, promise in step["pbrts"].items():
            merge.feed(name, [], (data(promise), b""))
        assert merge.position[0] == data(step["highWaterMark"])


def test_the_config_servers_own_events_name_no_place() -> None:
    case = vector("DoesNotAdvanceHighWaterMarkForIneligibleCursor")
    first = case["steps"][0]
    merge: Merge[Event] = Merge((data(first["highWaterMark"]), b""))
    for name in first["pbrts"]:
        merge.add(name, (b"", b""), guide=name == case["configCursor"])
    for step in case["steps"]:
        events = step.get("events", {})
        for name, promise in step["pbrts"].items():
            brought = [Event(data(event)) for event in events.get(name, ())]
            merge.feed(name, brought, (data(promise), b""))
        if step.get("ready"):
            assert [event.token for _, event in merge.ready()] == [data(step["next"])]
        expected = step.get("highWaterMarkAfter") or step["highWaterMark"]
        assert merge.position[0] == data(expected)
