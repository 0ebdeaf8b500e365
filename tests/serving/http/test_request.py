"""Headers and query of a request."""

from __future__ import annotations

import pytest

from mooring.kit.loop import run
from tests.serving.http.loopback import get
from tests.serving.http.parsed_requests import read, request


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        pytest.param("/a/b", "/a/b", {}, id="none"),
        pytest.param("/a?", "/a", {}, id="an empty one"),
        pytest.param("/a%20b?c=d", "/a%20b", {"c": ["d"]}, id="the path stays as it is"),
        pytest.param("/a?b=c&b=d&e", "/a", {"b": ["c", "d"], "e": [""]}, id="twice, and without a value"),
        pytest.param("/a?b=c+d%20e%3D", "/a", {"b": ["c d e="]}, id="escapes"),
        pytest.param("/a?b=c?d", "/a", {"b": ["c?d"]}, id="a second question mark"),
        pytest.param("/a?b=%ff", "/a", {"b": ["\ufffd"]}, id="escapes that are no text"),
        pytest.param("/a?b=%zz&c=d&e=%", "/a", {"c": ["d"]}, id="escapes that are none"),
        pytest.param("/a?b=c;d&e;f=g&h=i", "/a", {"h": ["i"]}, id="semicolons, which part nothing any more"),
        pytest.param("//a/../b", "//a/../b", {}, id="a path that goes round"),
    ],
)
def test_path_and_query(target: str, path: str, query: dict[str, list[str]]) -> None:
    asked = request("GET", target)
    assert (asked.path, dict(asked.query)) == (path, query)


def test_fields_are_found_by_their_names_in_lower_case() -> None:
    asked = request("GET", "/", {"X-Name": "value", "x-empty": ""})
    assert [asked.header(name) for name in (b"x-name", b"x-empty", b"x-none")] == ["value", "", ""]
    assert [asked.has(name) for name in (b"x-name", b"x-empty", b"x-none")] == [True, True, False]


def test_what_is_said_twice_is_kept_twice_and_the_first_counts() -> None:
    (asked,) = read(get("/", "X-A: 1", "Y: 2", "x-a: 3").encode())
    assert not isinstance(asked, str)
    assert asked.header(b"x-a") == "1"  # type: ignore[union-attr]
    assert asked.headers(b"x-") == [("x-a", "1"), ("x-a", "3")]  # type: ignore[union-attr]
    assert asked.headers() == [("host", "h"), ("x-a", "1"), ("y", "2"), ("x-a", "3")]  # type: ignore[union-attr]


def test_fields_are_counted_without_what_is_between_them() -> None:
    assert request("GET", "/", {"X": "abc"}).header_bytes == len("Hosth") + len("Xabc")


def test_a_value_may_hold_any_bytes() -> None:
    assert request("GET", "/", {"X": "ä"}).header(b"x") == "ä"


def test_without_a_body_there_is_nothing_to_read() -> None:
    assert run(request("GET", "/").read(10)) == b""
