"""Tokens from a file, and whose they are."""

from __future__ import annotations

import logging

import pytest

from mooring.apiserver.access.token_file import ADMIN, FixedTokens, TokenFileError, parse_token_file
from mooring.apiserver.access.users import User


@pytest.mark.parametrize(
    ("text", "users"),
    [
        pytest.param("t,anna,1\n", {"t": User("anna", "1")}, id="without groups"),
        pytest.param('t,anna,1,"a,b"\n', {"t": User("anna", "1", ("a", "b"))}, id="two groups"),
        pytest.param("t,anna,1,a,b\n", {"t": User("anna", "1", ("a",))}, id="further columns are ignored"),
        pytest.param("t,anna,1\n\nu,bob,2", {"t": User("anna", "1"), "u": User("bob", "2")}, id="an empty line"),
        pytest.param("t,anna,1\r\nu,bob,2\r\n", {"t": User("anna", "1"), "u": User("bob", "2")}, id="from Windows"),
        pytest.param('"t ""x""",anna,1', {'t "x"': User("anna", "1")}, id="quotes in quotes"),
        pytest.param("", {}, id="nothing"),
        pytest.param("t,anna,1\nt,bob,2\n", {"t": User("bob", "2")}, id="of two the later one counts"),
        pytest.param(",anna,1\nt,bob,2\n", {"t": User("bob", "2")}, id="an empty token is nobody's"),
    ],
)
def test_a_file_names_users(text: str, users: dict[str, User]) -> None:
    assert parse_token_file(text, "tokens.csv") == users


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "t,anna,1\nsecret,bob\n",
            "token file 'tokens.csv', line 2: must have at least 3 columns (token, user name, user uid), found 2",
            id="too few columns",
        ),
        pytest.param(
            't,anna,1\n\n"sec"ret,bob,2\n',
            "token file 'tokens.csv', line 3: ',' expected after '\"'",
            id="a quote in the wrong place",
        ),
        pytest.param(
            '"secret,bob,2\n', "token file 'tokens.csv', line 1: unexpected end of data", id="a quote without an end"
        ),
    ],
)
def test_a_bad_file_is_rejected_by_line_and_without_secrets(text: str, message: str) -> None:
    with pytest.raises(TokenFileError) as rejected:
        parse_token_file(text, "tokens.csv")
    assert str(rejected.value) == message
    assert "sec" not in str(rejected.value)


def test_warnings_name_the_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parse_token_file("secret,anna,1\nsecret,bob,2\n,eve,3\n", "tokens.csv")
    assert [record.getMessage() for record in caplog.records] == [
        "duplicate token in token file 'tokens.csv', line 2",
        "empty token in token file 'tokens.csv', line 3",
    ]


def test_known_and_unknown_tokens() -> None:
    tokens = FixedTokens({"secret": ADMIN})
    assert tokens.user_of("secret") == User("admin", "admin", ("system:masters", "system:authenticated"))
    assert tokens.user_of("Secret") is None
    assert tokens.user_of("") is None
    assert len(tokens) == 1


def test_no_token_is_shown() -> None:
    tokens = FixedTokens({"secret": ADMIN})
    assert repr(tokens) == "FixedTokens(1)"
    assert "secret" not in repr(vars(tokens))
