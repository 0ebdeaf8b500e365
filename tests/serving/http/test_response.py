"""Heads of answers, to the byte."""

from __future__ import annotations

import pytest

from mooring.kit.clock import VirtualClock
from mooring.serving.http.response import Dates, Headers, Response, closing_line, http_date

DATE = b"Date: D\r\n"


@pytest.mark.parametrize(
    ("response", "is_old", "head"),
    [
        pytest.param(
            Response(200, b"abc", "a/b"),
            False,
            "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 3\r\nDate: D\r\n\r\n",
            id="an answer",
        ),
        pytest.param(
            Response(404, b"", "", (("X", "1"), ("X", "2"))),
            True,
            "HTTP/1.0 404 Not Found\r\nX: 1\r\nX: 2\r\nContent-Length: 0\r\nDate: D\r\n\r\n",
            id="an old one, with fields of its own",
        ),
        pytest.param(Response(204, b"", ""), False, "HTTP/1.1 204 No Content\r\nDate: D\r\n\r\n", id="no content"),
        pytest.param(
            Response(299, b"", ""), False, "HTTP/1.1 299 \r\nContent-Length: 0\r\nDate: D\r\n\r\n", id="an unknown code"
        ),
        pytest.param(
            Response(304, b"", "", (("Warning", "a\r\nX: b\nc"),)),
            False,
            "HTTP/1.1 304 Not Modified\r\nWarning: a  X: b c\r\nDate: D\r\n\r\n",
            id="nobody else ends a line",
        ),
    ],
)
def test_heads(response: Response, is_old: bool, head: str) -> None:
    assert response.head(DATE, b"", is_old=is_old).decode() == head


def test_a_value_may_hold_any_letters() -> None:
    headers: Headers = (("Warning", "ä"),)
    assert "Warning: ä\r\n".encode() in Response(200, b"", "", headers).head(DATE, b"", is_old=False)


@pytest.mark.parametrize(
    ("is_kept_alive", "is_old", "line"),
    [
        pytest.param(True, False, b"", id="it stays, as everybody expects"),
        pytest.param(False, False, b"Connection: close\r\n", id="it closes"),
        pytest.param(True, True, b"Connection: keep-alive\r\n", id="an old one stays"),
        pytest.param(False, True, b"", id="an old one closes, as everybody expects"),
    ],
)
def test_what_is_said_of_the_connection(is_kept_alive: bool, is_old: bool, line: bytes) -> None:
    assert closing_line(is_kept_alive=is_kept_alive, is_old=is_old) == line


@pytest.mark.parametrize(
    ("second", "text"),
    [
        pytest.param(0, "Thu, 01 Jan 1970 00:00:00 GMT", id="the first second"),
        pytest.param(1_794_821_126, "Mon, 16 Nov 2026 09:25:26 GMT", id="another one"),
    ],
)
def test_dates_are_in_english(second: int, text: str) -> None:
    assert http_date(second) == text


def test_the_date_of_a_second_is_made_once() -> None:
    clock = VirtualClock()
    dates = Dates(clock)
    first = dates.line()
    assert dates.line() is first
    clock.advance_to(clock.now_s() + 1.0)
    assert dates.line() != first
