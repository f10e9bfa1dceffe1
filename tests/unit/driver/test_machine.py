"""The resume machine on a deployment that is not there: patience, time-outs, stores, closing."""

from __future__ import annotations

from typing import Any

import pytest
from pymongo.errors import AutoReconnect, OperationFailure
from tests.support.fake_deployment import FailPoint, FakeDeployment, FakeTarget, patience, token

from tailrace.driver import requests
from tailrace.driver.patience import LONGEST_PAUSE_S, Patience
from tailrace.errors import OptionError, ProtocolError

NETWORK = ("getMore",), 1


@pytest.fixture
def deployment() -> FakeDeployment:
    return FakeDeployment()


@pytest.fixture
def things(deployment: FakeDeployment) -> FakeTarget:
    return FakeTarget(deployment)["shop"]["things"]


def ids(events: Any) -> list[int]:
    return [event["documentKey"]["_id"] for event in events]


def test_consecutive_errors_are_resumed_without_an_event_between(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    stream = things.watch()
    deployment.fail_points.append(FailPoint(("getMore",), 5))
    for _ in range(5):
        assert stream.try_next() is None
    things.insert_one({"_id": 1})
    assert ids([stream.next()]) == [1]


def test_a_resume_that_fails_is_told_and_tried_again_by_the_next_call(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    stream = things.watch()
    things.insert_one({"_id": 1})
    deployment.fail_points.append(FailPoint(("getMore", "aggregate"), 3))
    with pytest.raises(AutoReconnect):
        stream.next()
    assert stream.alive
    assert ids([stream.next()]) == [1]


def test_a_resume_that_is_refused_ends_the_stream(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    stream = things.watch()
    deployment.fail_points += [FailPoint(("getMore",), 1), FailPoint(("aggregate",), 1, 286)]
    with pytest.raises(OperationFailure) as raised:
        stream.next()
    assert raised.value.code == 286
    assert not stream.alive
    with pytest.raises(StopIteration):
        stream.next()


def test_the_aggregate_is_retried_once_as_a_read(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    deployment.fail_points.append(FailPoint(("aggregate",), 1, 11600))
    assert things.watch().alive
    deployment.fail_points.append(FailPoint(("aggregate",), 2, 11600))
    with pytest.raises(OperationFailure):
        things.watch()
    assert deployment.names() == ["aggregate"] * 4


def test_the_old_cursor_is_killed_unless_the_server_has_none_left(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    stream = things.watch()
    first = stream.cursor_id
    deployment.fail_points.append(FailPoint(("getMore",), 1, 6, checked_out=True))
    stream.try_next()
    kills = [command for name, _, command in deployment.commands if name == "killCursors"]
    assert [kill["cursors"] for kill in kills] == [[first]]
    deployment.fail_points.append(FailPoint(("getMore",), 1, 43))
    stream.try_next()
    assert deployment.names().count("killCursors") == 1


def test_keep_trying_outlasts_what_would_end_a_stream(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    clock = [0.0]
    stream = things.watch(patience=patience(10.0, lambda: clock[0]))
    things.insert_one({"_id": 1})
    stream._closing.wait = lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    deployment.fail_points += [
        FailPoint(("getMore",), 1, 11600),
        FailPoint(("aggregate",), 7),
    ]
    assert ids([stream.next()]) == [1]
    assert 0.1 < clock[0] < 10
    deployment.fail_points += [FailPoint(("getMore",), 1), FailPoint(("aggregate",), 10_000)]
    with pytest.raises(AutoReconnect):
        stream.next()
    assert clock[0] > 10


def test_keep_trying_does_not_outlast_what_cannot_pass(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    stream = things.watch(patience=patience(None, lambda: 0.0))
    deployment.fail_points.append(FailPoint(("getMore",), 1, 280))
    with pytest.raises(OperationFailure):
        stream.next()
    assert not stream.alive


def test_pauses_double_up_to_a_cap_and_chance_shortens_them() -> None:
    lost = requests.Failure(AutoReconnect(), requests.Kind.NETWORK)
    for dice, first in ((0.0, 0.05), (1.0, 0.1)):
        calm = Patience(None, lambda: 0.0, lambda dice=dice: dice)
        assert calm.pause_s() == 0
        pauses = [calm.bears(lost) and calm.pause_s() for _ in range(40)]
        assert pauses[:3] == pytest.approx([first, first * 2, first * 4])
        assert max(pauses) == pytest.approx(LONGEST_PAUSE_S * (1 + dice) / 2)
        calm.calm()
        assert calm.pause_s() == 0


class Memory:
    """A store that remembers every token it was given."""

    def __init__(self, held: Any = None) -> None:
        self.held = held
        self.saved: list[Any] = []

    def load(self) -> Any:
        return self.held

    def save(self, token: Any) -> None:
        self.held = dict(token)
        self.saved.append(self.held)


def test_a_token_is_stored_when_the_next_batch_is_asked_for(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    store = Memory()
    stream = things.watch(store=store, batch_size=2)
    assert store.saved == [token(1)]
    for number in range(4):
        things.insert_one({"_id": number})
    stream.next()
    last = stream.next()["_id"]
    assert store.saved == [token(1)]
    stream.next()
    assert store.saved[-1] == last
    stream.close()
    assert store.saved[-1] == last


def test_a_stored_token_wins_over_where_the_caller_would_start(things: FakeTarget) -> None:
    for number in range(3):
        things.insert_one({"_id": number})
    stream = things.watch(store=Memory(token(3)), resume_after=token(1))
    assert ids([stream.next()]) == [2]


def test_a_batch_is_handed_out_whole_with_the_token_behind_it(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    stream = things.watch()
    for number in range(3):
        things.insert_one({"_id": number})
    stream.next()
    assert stream.buffered == 2
    events, at = stream.next_batch()
    assert ids(events) == [1, 2]
    assert at == token(deployment.time)
    deployment.idle()
    assert stream.next_batch() == ([], token(deployment.time))


def test_an_invalidate_is_the_last_event(things: FakeTarget) -> None:
    stream = things.watch()
    things.drop()
    assert [event["operationType"] for event in stream] == ["drop", "invalidate"]
    assert not stream.alive
    assert stream.try_next() is None
    assert stream.next_batch() == ([], stream.resume_token)


def test_an_interrupted_read_is_resumed_and_repeats_nothing(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    stream = things.watch()
    things.insert_one({"_id": 1})
    answer = deployment.perform

    def interrupted(request: Any) -> Any:
        deployment.perform = answer
        answer(request)
        raise KeyboardInterrupt

    deployment.perform = interrupted
    with pytest.raises(KeyboardInterrupt):
        stream.next()
    things.insert_one({"_id": 2})
    assert ids([stream.next(), stream.next()]) == [1, 2]


def test_a_reply_that_is_no_batch_is_the_peers_fault(
    deployment: FakeDeployment, things: FakeTarget
) -> None:
    answer = deployment.perform

    def broken(request: Any) -> Any:
        reply = answer(request)
        reply.document.get("cursor", {}).pop("nextBatch", None)
        return reply

    deployment.perform = broken
    with pytest.raises(ProtocolError):
        things.watch().try_next()


def test_an_unknown_word_names_the_nearest() -> None:
    from tailrace.driver import options

    with pytest.raises(OptionError, match=r"did you mean '1\.6\.0'"):
        options.profile("1.6")
    assert options.server_name("show_raw_update_description") == "showRawUpdateDescription"
