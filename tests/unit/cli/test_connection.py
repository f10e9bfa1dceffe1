"""What is said of a connection string that cannot be used, and what never is."""

from __future__ import annotations

import pytest

from tailrace.cli.connection import HIDDEN, client_of, without_secrets
from tailrace.errors import OptionError

WRONG = {
    "another scheme": ("http://localhost", "must begin with 'mongodb://'"),
    "a port that is none": ("mongodb://localhost:99999/", "Port"),
    "no host": ("mongodb://", "host"),
    "a certificate that is not there": ("mongodb://h/?tls=true&tlsCAFile=/nope.pem", "/nope.pem"),
    "a password with a stray sign": ("mongodb://user:ge@heim@localhost/", "must be escaped"),
    "a key's password that is wrong": (
        "mongodb://h/?tls=true&tlsCertificateKeyFilePassword=geheim&tlsCertificateKeyFile=/geheim",
        "percent-encode",
    ),
}


@pytest.mark.parametrize(("uri", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_in_one_error(uri: str, said: str) -> None:
    with pytest.raises(OptionError) as raised:
        client_of(uri)
    assert said in str(raised.value)
    assert "heim" not in str(raised.value)


def test_an_option_that_does_nothing_is_named_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    client_of("mongodb://localhost:1/?bogus=1").close()
    said = capsys.readouterr().err
    assert said.startswith("tailrace: URI: Unknown option: bogus")
    assert said.count("\n") == 1


@pytest.mark.parametrize("shown", ["s%40fe", "s@fe", "alice"])
def test_a_message_that_repeats_a_secret_is_not_shown(shown: str) -> None:
    uri = "mongodb://alice:s%40fe@localhost/?authSource=admin"
    assert without_secrets(f"bad: {shown}", uri) == HIDDEN
    assert without_secrets("bad: localhost", uri) == "bad: localhost"
