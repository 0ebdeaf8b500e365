"""Error responses with the texts of kube-scheduler."""

from __future__ import annotations

import json

import pytest

from mooring.serving.pages import PageRequest, PageResponse, failed, forbidden, not_found, unauthorized


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (unauthorized(), 401, "Unauthorized"),
        (forbidden("jane", "get", "/metrics"), 403, 'forbidden: User "jane" cannot get path "/metrics"'),
        (
            forbidden("<b>", "get", "/a&b", "no role"),
            403,
            'forbidden: User "&lt;b&gt;" cannot get path "/a&amp;b": no role',
        ),
        (failed("a bug"), 500, "Internal error occurred: a bug"),
    ],
    ids=["who is it", "may not", "may not, and why", "a bug"],
)
def test_a_refusal_is_a_status(answer: PageResponse, code: int, message: str) -> None:
    status = json.loads(answer.body)
    assert (answer.code, status["code"], status["message"], status["kind"]) == (code, code, message, "Status")


def test_what_is_not_there() -> None:
    assert (not_found().code, not_found().body) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    ("query", "number"), [({}, 30.0), ({"seconds": ["5"]}, 5.0), ({"seconds": ["x"]}, 30.0), ({"seconds": []}, 30.0)]
)
def test_numbers_of_a_query(query: dict[str, list[str]], number: float) -> None:
    assert PageRequest("GET", "/", query).number("seconds", 30.0) == number
