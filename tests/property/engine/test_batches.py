"""However the log is cut into batches, the events are the same, and each token goes on."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.change_streams import differences
from tests.support.effort import effort
from tests.support.recorded_streams import RecordedStream, longest, token_of

SMALL_LOG_BYTES = 1 << 20
STREAMS = [
    stream for stream in longest() if len(stream.recording.file("oplog.bson")) < SMALL_LOG_BYTES
]


@settings(max_examples=effort(60), deadline=None)
@given(st.sampled_from(STREAMS), st.data())
def test_any_split_of_the_log_gives_the_same_events(
    stream: RecordedStream, data: st.DataObject
) -> None:
    entries = stream.entries
    cuts = data.draw(st.lists(st.integers(0, len(entries)), max_size=30).map(sorted), label="cuts")
    edges = [0, *cuts, len(entries)]
    batches = [entries[start:end] for start, end in itertools.pairwise(edges)]
    events: list[bytes] = []
    tokens = [""]
    for made, token in stream.in_batches(batches):
        assert token >= tokens[-1], "a post-batch token went back"
        if made:
            assert token >= token_of(made[-1])["_data"]
            assert token_of(made[0])["_data"] > tokens[-1], "a token ran ahead of its events"
        tokens.append(token)
        events += made
    assert not differences(events, stream.events)
