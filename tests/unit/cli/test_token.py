"""``tailrace token`` explains tokens, makes high-water marks, and refuses the rest in one line."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tailrace.cli.app import app

DROP = "826692B6D9000000012B042C0100296E5A1004FC22C3AF7E40428CBD5D09FF3547FFF2463C6F7065726174"
DROP += "696F6E54797065003C64726F70000004"


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["token", *words])
    return result.exit_code, result.stdout, result.stderr


def test_decode_shows_every_element_of_an_event_token() -> None:
    status, out, _ = run("decode", DROP)
    assert status == 0
    assert dict(line.split(maxsplit=1) for line in out.splitlines()) == {
        "clusterTime": "Timestamp(1720891097, 1)  2024-07-13T17:18:17Z",
        "version": "2",
        "tokenType": "event",
        "uuid": "fc22c3af-7e40-428c-bd5d-09ff3547fff2",
        "txnOpIndex": "0",
        "fromInvalidate": "false",
        "eventIdentifier": '{"operationType": "drop"}',
    }


def test_decode_takes_type_bits_and_shows_the_type() -> None:
    token = "825F103644000000042B022C0100296E5A100452A662230D6B4C08B0AF844900F3A335461E5F6964002B06"
    status, out, _ = run("decode", token + "0004", "--type-bits", "40")
    assert (status, '{"_id": 3.0}' in out) == (0, True)


def test_decode_shows_a_string_that_is_no_utf8() -> None:
    token = "82640000000000000A2B022C0100296E5A1004" + "00" * 16 + "463C5F6964003CFF61000004"
    status, out, _ = run("decode", token)
    assert (status, '{"_id": "\\ufffda"}' in out) == (0, True)


def test_at_makes_a_token_that_decode_reads() -> None:
    status, out, _ = run("at", "2026-11-18T12:00:00Z")
    assert (status, out) == (0, "826AFD9340000000002B0229296E04\n")
    status, out, _ = run("at", "Timestamp(1, 2)", "--version", "2")
    assert (status, out) == (0, "8200000001000000022B0429296E1404\n")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("decode", DROP[:50]), 3, "hex digit 50"),
        (("decode", "8266zz"), 3, "not a hex digit (hex digit 4)"),
        (("decode", "82640000000000000A2"), 3, "half a byte at the end (hex digit 18)"),
        (("decode", ""), 3, "empty"),
        (("decode", "{not json"), 2, "TOKEN is not Extended JSON"),
        (("decode", DROP, "--type-bits", "xyz"), 2, "--type-bits is not hex"),
        (("at", "yesterday"), 2, "'yesterday' is neither"),
    ],
)
def test_bad_input_ends_in_one_line(words: tuple[str, ...], status: int, said: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (status, "")
    assert said in err
    assert err.count("\n") == 1
