"""The short way to read a write sees exactly what the general way sees."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import effort
from tests.support.recordings import load, scenarios

from tailrace.errors import BadBson
from tailrace.oplog.entry import WRITES, Entry
from tailrace.oplog.plain import plain_write
from tailrace.raw import spans


def recorded_entries() -> list[bytes]:
    found = []
    for version, scenario in scenarios():
        recording = load(version, scenario)
        for name in recording.names:
            if name.startswith("oplog"):
                found += recording.documents(name)
    return found


def parts(raw: bytes) -> tuple[object, ...]:
    fields = spans(raw)

    def value(name: bytes, skip: int = 0, less: int = 0) -> bytes | None:
        span = fields.get(name)
        return raw[span[1] + skip : span[2] - less] if span else None

    time = int.from_bytes(value(b"ts") or b"", "little")
    texts = value(b"op", 4, 1), value(b"ns", 4, 1), value(b"ui", 5)
    return (*texts, value(b"o"), value(b"o2"), time, value(b"wall") or b"")


def test_both_ways_read_the_same_of_every_recorded_write() -> None:
    writes = [raw for raw in recorded_entries() if Entry(raw).op in WRITES]
    plain = [raw for raw in writes if plain_write(raw) is not None]
    assert len(plain) > 0.9 * len(writes)
    for raw in plain:
        assert plain_write(raw) == parts(raw)


def test_both_ways_read_the_same_of_operations_in_transactions() -> None:
    inner = [
        operation
        for raw in recorded_entries()
        for operation in Entry(raw).apply_ops()
        if spans(operation)[b"op"]
    ]
    plain = [raw for raw in inner if plain_write(raw, inner=True) is not None]
    assert len(plain) > 0.5 * len(inner)
    for raw in plain:
        assert plain_write(raw, inner=True) == parts(raw)


WRITES_ONLY = [raw for raw in recorded_entries() if plain_write(raw) is not None]


@given(st.sampled_from(WRITES_ONLY), st.data())
@settings(deadline=None, max_examples=effort(500))
def test_a_damaged_write_is_read_alike_or_refused(raw: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(raw) - 1))
    damaged = raw[:at] + data.draw(st.binary(max_size=2)) + raw[at + 1 :]
    found = plain_write(damaged)
    if found is None or int.from_bytes(damaged[:4], "little") != len(damaged):
        return
    try:
        assert found == parts(damaged)
    except BadBson:
        return
