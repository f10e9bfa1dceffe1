"""A login shows its password where it must, and nowhere else."""

from __future__ import annotations

from urllib.parse import unquote

from tailrace.embedded.login import Login, new_password


def test_the_password_is_not_in_the_representation() -> None:
    login = Login("root", "geheim")
    assert "geheim" not in repr(login)
    assert "geheim" not in str(login)


def test_a_connection_string_quotes_what_would_end_it() -> None:
    userinfo = Login("a@b", "c:/d?").userinfo
    assert userinfo == "a%40b:c%3A%2Fd%3F@"
    assert unquote(userinfo) == "a@b:c:/d?@"


def test_no_two_passwords_are_equal() -> None:
    assert new_password() != new_password()
