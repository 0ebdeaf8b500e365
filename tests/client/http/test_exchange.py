"""Requests to servers other than an API server: URLs, headers, error texts."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from mooring.client.http.dial import ConnectError, connect, exchange_error_text
from mooring.client.http.exchange import HttpUrl, encode_request
from mooring.client.http.wire import BrokenAnswerError, ConnectionClosedError
from mooring.kit.loop import run_real
from tests.ports import silent_port


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("http://a/b", (False, "a", 80, "a", "/b")),
        ("https://a", (True, "a", 443, "a", "/")),
        ("http://a:81/b?c=d&e=%2F#f", (False, "a", 81, "a:81", "/b?c=d&e=%2F")),
        ("http://[::1]:8080/", (False, "::1", 8080, "[::1]:8080", "/")),
        ("http://a/ü x", (False, "a", 80, "a", "/%C3%BC%20x")),
        ("http://a?b", (False, "a", 80, "a", "/?b")),
        ("http://me:secret@a:81/", (False, "a", 81, "a:81", "/")),
    ],
)
def test_urls(text: str, wanted: tuple[object, ...]) -> None:
    url = HttpUrl.parse(text)
    assert (url.is_secure, url.host, url.port, url.host_header, url.target) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nowhere/x", 'unsupported protocol scheme ""'),
        ("ftp://a/", 'unsupported protocol scheme "ftp"'),
        ("http:///x", "no Host in request URL"),
        ("http://[[::]:80/", "invalid|Invalid|does not appear"),
        ("http://a:99999/", "out of range"),
    ],
)
def test_invalid_urls(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        HttpUrl.parse(text)


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("/c", "http://a:81/c"),
        ("c", "http://a:81/x/c"),
        ("//b/c", "http://b/c"),
        ("https://b:1/c", "https://b:1/c"),
    ],
)
def test_a_redirect_names_the_next_url(location: str, wanted: str) -> None:
    assert HttpUrl.parse("http://a:81/x/y").join(location).text == wanted


def test_a_request_has_the_headers_of_its_caller() -> None:
    headers = [("host", "other"), ("X-Key", "1"), ("X-Key", "2"), ("User-Agent", "me")]

    request = encode_request("POST", HttpUrl.parse("http://a/b?c"), headers, b"body")

    assert request == (
        b"POST /b?c HTTP/1.1\r\nhost: other\r\nX-Key: 1\r\nX-Key: 2\r\nUser-Agent: me\r\nContent-Length: 4\r\n\r\nbody"
    )


def test_a_user_in_the_url_is_a_header() -> None:
    request = encode_request("GET", HttpUrl.parse("http://me:sec%20ret@a/"), [])
    assert b"\r\nHost: a\r\n" in request
    assert b"\r\nAuthorization: Basic bWU6c2VjIHJldA==\r\n" in request


@pytest.mark.parametrize("header", [("X", "a\r\nY: b"), ("X\n", "a"), ("", "a")])
def test_a_header_cannot_break_a_request_apart(header: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="invalid header field"):
        encode_request("GET", HttpUrl.parse("http://a/"), [header])


def _not_tls() -> ssl.SSLError:
    error = ssl.SSLError(1, "wrong version number")
    error.reason = "WRONG_VERSION_NUMBER"
    return error


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "dial tcp: lookup h: no such host"),
        (TimeoutError(), "dial tcp 1.2.3.4:80: i/o timeout"),
        (OSError(errno.EHOSTUNREACH, "x"), "dial tcp 1.2.3.4:80: connect: no route to host"),
        (OSError(errno.ECONNREFUSED, "x"), "dial tcp 1.2.3.4:80: connect: connection refused"),
        (_not_tls(), "http: server gave HTTP response to HTTPS client"),
        (OSError("strange"), "dial tcp 1.2.3.4:80: strange"),
    ],
)
def test_connect_errors_have_the_text_of_go(error: OSError, wanted: str) -> None:
    assert exchange_error_text(ConnectError(error, "h", "1.2.3.4:80"), "elsewhere") == wanted


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (ConnectionClosedError("the server hung up"), "EOF"),
        (OSError(errno.ECONNRESET, "x"), "read tcp 1.2.3.4:80: read: connection reset by peer"),
        (BrokenAnswerError("half of it"), "half of it"),
        (_not_tls(), "http: server gave HTTP response to HTTPS client"),
        (OSError(), "OSError"),
    ],
)
def test_exchange_errors_have_the_text_of_go(error: OSError, wanted: str) -> None:
    assert exchange_error_text(error, "1.2.3.4:80") == wanted


def test_a_connect_error_names_the_address_that_was_tried() -> None:
    with silent_port() as port, pytest.raises(ConnectError) as caught:
        run_real(connect("127.0.0.1", port, None))
    assert str(caught.value) == f"dial tcp 127.0.0.1:{port}: connect: connection refused"
