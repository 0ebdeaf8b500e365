"""Bytes to requests, split anywhere; invalid input."""

from __future__ import annotations

import pytest

from mooring.kit.loop import run, run_real
from mooring.serving.http.parser import ParseFailure, RequestParser, ServerLimits
from mooring.serving.http.request import BrokenBodyError, Request
from tests.serving.http.loopback import get, post, read, request

CHUNKED = (
    get("/c", "Transfer-Encoding: chunked", method="POST") + "3\r\nabc\r\n2;why=not\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
)
UPGRADE = ("Connection: Upgrade", "Upgrade: h2c")


async def summary(found: Request | ParseFailure) -> str:
    assert isinstance(found, Request), found
    return f"{found.method} {found.path} {(await found.body.read()).decode() if found.body else '-'}"


async def summaries(found: list[Request | ParseFailure]) -> list[str]:
    return [await summary(one) for one in found]


VALID_REQUESTS = [
    pytest.param(get("/a"), ["GET /a -"], id="one request"),
    pytest.param(get("/a") + get("/b"), ["GET /a -", "GET /b -"], id="pipelined requests"),
    pytest.param("\r\n\r\n" + get("/a") + "\r\n" + get("/b"), ["GET /a -", "GET /b -"], id="empty lines between them"),
    pytest.param(post("body", "/a") + get("/b"), ["POST /a body", "GET /b -"], id="a body with a length"),
    pytest.param(CHUNKED + get("/b"), ["POST /c abcde", "GET /b -"], id="a body in chunks and another request"),
    pytest.param(post("", "/a") + get("/b"), ["POST /a -", "GET /b -"], id="a body of length 0"),
    pytest.param(get("/a", *UPGRADE) + get("/b"), ["GET /a -", "GET /b -"], id="an upgrade request"),
    pytest.param(
        post("body", "/a", *UPGRADE) + get("/b"), ["POST /a body", "GET /b -"], id="an upgrade request with a body"
    ),
    pytest.param(
        get("/a", "Transfer-Encoding: chunked", *UPGRADE, method="POST") + "2\r\nab\r\n0\r\n\r\n" + get("/b"),
        ["POST /a ab", "GET /b -"],
        id="an upgrade request with chunks",
    ),
    pytest.param(
        post("body", "/a", "Connection: close, Upgrade", "Upgrade: h2c") + get("/b"),
        ["POST /a body"],
        id="an upgrade request with connection: close",
    ),
    pytest.param(get("http://example.com:80/a?b=c"), ["GET /a -"], id="an absolute URL"),
    pytest.param(get("https://example.com"), ["GET / -"], id="an absolute URL without a path"),
    pytest.param(get("/a").replace("h\r\n", "[::1]:6443\r\n"), ["GET /a -"], id="an IPv6 host"),
    pytest.param(get("/a").replace("h\r\n", "\r\n"), ["GET /a -"], id="an empty host"),
    pytest.param(get("*", method="OPTIONS"), ["OPTIONS * -"], id="OPTIONS *"),
    pytest.param(get("/a#b"), ["GET /a -"], id="a fragment"),
    pytest.param(get("/a", method="PROPFIND"), ["PROPFIND /a -"], id="a method without a handler"),
]


@pytest.mark.parametrize(("sent", "expected"), VALID_REQUESTS)
def test_valid_requests_are_parsed(sent: str, expected: list[str]) -> None:
    assert run_real(summaries(read(sent.encode()))) == expected


@pytest.mark.parametrize(("sent", "expected"), VALID_REQUESTS)
def test_valid_requests_are_parsed_byte_by_byte(sent: str, expected: list[str]) -> None:
    assert run_real(summaries(read(*[bytes([byte]) for byte in sent.encode()]))) == expected


def test_a_long_body_does_not_count_for_the_size_of_the_next_head() -> None:
    sent = (post("x" * 200_000, "/a") + get("/b")).encode()
    assert run_real(summaries(read(sent[:-8], sent[-8:])))[1:] == ["GET /b -"]


def test_a_request_is_returned_before_its_body_is_complete() -> None:
    found: list[Request | ParseFailure] = []
    reader = RequestParser(ServerLimits(), found.append)
    reader.feed(post("body")[:-4].encode())
    (request,) = found
    assert isinstance(request, Request)
    assert request.body is not None
    assert (request.body.length, request.body.is_complete) == (4, False)
    reader.feed(b"body")
    assert request.body.is_complete


@pytest.mark.parametrize(
    ("head", "is_old", "is_kept_alive"),
    [
        pytest.param(get(), False, True, id="1.1"),
        pytest.param(get("/", "Connection: close"), False, False, id="1.1 with close"),
        pytest.param(get("/", "Connection: x, Close"), False, False, id="1.1 with close in a list"),
        pytest.param(get(version="1.0"), True, False, id="1.0"),
        pytest.param(get("/", "Connection: keep-alive", version="1.0"), True, True, id="1.0 with keep-alive"),
        pytest.param("GET / HTTP/1.0\r\n\r\n", True, False, id="1.0 without a host"),
    ],
)
def test_version_and_connection_header_determine_keep_alive(head: str, is_old: bool, is_kept_alive: bool) -> None:
    (request,) = read(head.encode())
    assert isinstance(request, Request)
    assert (request.is_old, request.is_kept_alive) == (is_old, is_kept_alive)


def test_data_after_the_last_request_is_ignored() -> None:
    (first,) = read((get("/a", "Connection: close") + get("/b")).encode(), b"garbage")
    assert isinstance(first, Request)


LONG = "a" * 70_000


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param("\x00\x01\r\n\r\n", ParseFailure.UNREADABLE, id="garbage"),
        pytest.param(get().replace("\r", ""), ParseFailure.UNREADABLE, id="a line feed without a carriage return"),
        pytest.param("GET /\r\n\r\n", ParseFailure.UNREADABLE, id="no version"),
        pytest.param(get(version="1.2"), ParseFailure.UNREADABLE, id="version 1.2"),
        pytest.param(get(version="2.0"), ParseFailure.UNREADABLE, id="version 2.0"),
        pytest.param("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ParseFailure.UNREADABLE, id="the preface of HTTP/2"),
        pytest.param("GET / HTTP/1.1\r\n\r\n", ParseFailure.UNREADABLE, id="no host"),
        pytest.param(get("/", "Host: i"), ParseFailure.UNREADABLE, id="two hosts"),
        pytest.param(
            get().replace("h\r\n", "\xff\r\n"), ParseFailure.UNREADABLE, id="a host with a non-ASCII character"
        ),
        pytest.param(get().replace("h\r\n", "a/b\r\n"), ParseFailure.UNREADABLE, id="a host with a path"),
        pytest.param(get("a"), ParseFailure.UNREADABLE, id="a path without a slash"),
        pytest.param(get("/a%zz"), ParseFailure.UNREADABLE, id="a path with an invalid escape"),
        pytest.param(get("/a%2"), ParseFailure.UNREADABLE, id="a path with a truncated escape"),
        pytest.param(get("*"), ParseFailure.UNREADABLE, id="GET *"),
        pytest.param(get("http://a:99999/"), ParseFailure.UNREADABLE, id="an invalid port"),
        pytest.param(get("ftp://a/"), ParseFailure.UNREADABLE, id="another scheme"),
        pytest.param(get("a:443", method="CONNECT"), ParseFailure.UNREADABLE, id="CONNECT"),
        pytest.param(get("/\xe4"), ParseFailure.UNREADABLE, id="a path with a non-ASCII character"),
        pytest.param(get("/", "X Y: a"), ParseFailure.UNREADABLE, id="a field name with a space"),
        pytest.param(get("/", "XY"), ParseFailure.UNREADABLE, id="a field without a value"),
        pytest.param(get("/", "X: a\x00"), ParseFailure.UNREADABLE, id="a field value with NUL"),
        pytest.param(get("/", "X: a", " b"), ParseFailure.UNREADABLE, id="a folded field value"),
        pytest.param(get("/", "Content-Length: -1"), ParseFailure.UNREADABLE, id="a negative length"),
        pytest.param(get("/", "Content-Length: 1", "Content-Length: 2"), ParseFailure.UNREADABLE, id="two lengths"),
        pytest.param(
            get("/", "Content-Length: 9" + "9" * 30), ParseFailure.UNREADABLE, id="a length that is too large"
        ),
        pytest.param(
            get("/", "Content-Length: 1", "Transfer-Encoding: chunked"),
            ParseFailure.UNREADABLE,
            id="a length and chunks",
        ),
        pytest.param(get("/", "Transfer-Encoding: gzip"), ParseFailure.UNREADABLE, id="gzip transfer encoding"),
        pytest.param(
            get("/", "Transfer-Encoding: chunked", version="1.0"), ParseFailure.UNREADABLE, id="chunks with HTTP/1.0"
        ),
        pytest.param(
            get("/", "Transfer-Encoding: gzip, chunked"),
            ParseFailure.UNREADABLE,
            id="gzip and chunked transfer encoding",
        ),
        pytest.param(get("/", *["X: a"] * 128), ParseFailure.UNREADABLE, id="too many fields"),
        pytest.param(get("/" + "a" * 16_384), ParseFailure.TOO_LONG, id="a long path"),
        pytest.param(get("/", "X: " + LONG), ParseFailure.TOO_LONG, id="a long field"),
        pytest.param("GET /" + LONG + LONG, ParseFailure.TOO_LONG, id="an endless path"),
        pytest.param(get("/", "X: " + LONG + LONG)[:-4], ParseFailure.TOO_LONG, id="an endless field"),
        pytest.param(get(method="FROB"), ParseFailure.UNKNOWN_METHOD, id="an unknown method"),
        pytest.param(get(method="get"), ParseFailure.UNKNOWN_METHOD, id="a method in lower case"),
    ],
)
def test_an_invalid_request_is_one_failure_after_valid_requests(sent: str, expected: ParseFailure) -> None:
    first, *others = read((get("/before") + sent).encode("latin-1"), b"and more\r\n\r\n")
    assert isinstance(first, Request)
    assert others == [expected]


def test_an_endless_field_that_arrives_slowly_is_a_failure() -> None:
    found = read(get("/", "X: ")[:-4].encode(), *[b"a" * 1_000] * 100)
    assert found == [ParseFailure.TOO_LONG]


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param([b"zz\r\n"], id="an invalid chunk length"),
        pytest.param([b"2\r\nabc\r\n"], id="a chunk that is longer than its length"),
        pytest.param([b"0\r\nX: ", *[b"a" * 1_000] * 100], id="an endless trailer field"),
    ],
)
def test_an_invalid_body_is_an_error_for_its_reader(rest: list[bytes]) -> None:
    (request,) = read(get("/", "Transfer-Encoding: chunked", method="POST").encode(), b"1\r\na\r\n", *rest)
    assert isinstance(request, Request)
    assert request.body is not None
    with pytest.raises(BrokenBodyError):
        run_real(request.body.read())


def test_an_incomplete_body_fails_when_the_connection_is_closed() -> None:
    found: list[Request | ParseFailure] = []
    reader = RequestParser(ServerLimits(), found.append)
    reader.feed(post("body")[:-1].encode())
    reader.close()
    reader.feed(b"y" + get().encode())
    (request,) = found
    assert isinstance(request, Request)
    assert request.body is not None
    with pytest.raises(ConnectionResetError):
        run_real(request.body.read())


# --- Headers and query of a request ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        pytest.param("/a/b", "/a/b", {}, id="no query"),
        pytest.param("/a?", "/a", {}, id="an empty query"),
        pytest.param("/a%20b?c=d", "/a%20b", {"c": ["d"]}, id="the path is not unescaped"),
        pytest.param(
            "/a?b=c&b=d&e", "/a", {"b": ["c", "d"], "e": [""]}, id="a repeated parameter and one without a value"
        ),
        pytest.param("/a?b=c+d%20e%3D", "/a", {"b": ["c d e="]}, id="escapes"),
        pytest.param("/a?b=c?d", "/a", {"b": ["c?d"]}, id="a second question mark"),
        pytest.param("/a?b=%ff", "/a", {"b": ["\ufffd"]}, id="escapes that are not UTF-8"),
        pytest.param("/a?b=%zz&c=d&e=%", "/a", {"c": ["d"]}, id="invalid escapes"),
        pytest.param("/a?b=c;d&e;f=g&h=i", "/a", {"h": ["i"]}, id="semicolons are not separators"),
        pytest.param("//a/../b", "//a/../b", {}, id="a path with dot segments"),
    ],
)
def test_path_and_query_of_a_target(target: str, path: str, query: dict[str, list[str]]) -> None:
    parsed = request("GET", target)
    assert (parsed.path, dict(parsed.query)) == (path, query)


def test_header_names_are_lower_case() -> None:
    parsed = request("GET", "/", {"X-Name": "value", "x-empty": ""})
    assert [parsed.header(name) for name in (b"x-name", b"x-empty", b"x-none")] == ["value", "", ""]
    assert [parsed.has(name) for name in (b"x-name", b"x-empty", b"x-none")] == [True, True, False]


def test_repeated_headers_are_kept_and_the_first_is_returned() -> None:
    (parsed,) = read(get("/", "X-A: 1", "Y: 2", "x-a: 3").encode())
    assert not isinstance(parsed, str)
    assert parsed.header(b"x-a") == "1"  # type: ignore[union-attr]
    assert parsed.headers(b"x-") == [("x-a", "1"), ("x-a", "3")]  # type: ignore[union-attr]
    assert parsed.headers() == [("host", "h"), ("x-a", "1"), ("y", "2"), ("x-a", "3")]  # type: ignore[union-attr]


def test_header_bytes_count_names_and_values() -> None:
    assert request("GET", "/", {"X": "abc"}).header_bytes == len("Hosth") + len("Xabc")


def test_a_header_value_may_contain_any_bytes() -> None:
    assert request("GET", "/", {"X": "ä"}).header(b"x") == "ä"


def test_read_of_a_request_without_a_body_is_empty() -> None:
    assert run(request("GET", "/").read(10)) == b""
