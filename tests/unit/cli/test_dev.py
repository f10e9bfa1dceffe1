"""What ``tailrace dev up`` makes of its words and of the signals that it gets."""

from __future__ import annotations

import signal

import pytest
from typer.testing import CliRunner

from tailrace.cli.app import app
from tailrace.cli.dev import ended_by_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_that_asks_for_the_end_comes_as_an_interrupt(number: int) -> None:
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        signal.raise_signal(number)


def test_the_handlers_of_before_are_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ended_by_signals():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["postgres", "--tls"], "postgres has no --tls"),
        (["postgres", "--nodes", "2"], "postgres has no --nodes"),
        (["mongodb", "--shards", "2"], "mongodb has no --shards"),
        (["mongodb", "--nodes", "8"], "a set has 1 to 7 nodes, not 8"),
    ],
)
def test_what_a_kind_cannot_have_is_refused_in_one_line(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["dev", "up", *words])
    assert result.exit_code == 2
    assert result.stderr == f"tailrace: {message}\n"
