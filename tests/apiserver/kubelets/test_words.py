"""What can go wrong on the way to a kubelet, as kube-apiserver v1.36 says it."""

from __future__ import annotations

import pytest

from mooring.apiserver.kubelets.words import error_of_response, redirected


@pytest.mark.parametrize(
    ("code", "body", "reason", "message"),
    [
        (400, b"it waits", "BadRequest", "it waits"),
        (500, b"oh", "InternalError", "Internal error occurred: oh"),
        (404, b"no\n", "NotFound", "the server could not find the requested resource ( pods/log web)"),
        (401, b"", "Unauthorized", "the server has asked for the client to provide credentials ( pods/log web)"),
        (403, b"Forbidden (user=x)", "Forbidden", "Forbidden (user=x) ( pods/log web)"),
        (
            502,
            b"gone",
            "InternalError",
            'an error on the server ("gone") has prevented the request from succeeding ( pods/log web)',
        ),
    ],
)
def test_error_responses(code: int, body: bytes, reason: str, message: str) -> None:
    error = error_of_response(code, body, "web")
    assert (error.code, error.reason, error.message) == (code, reason, message)


def test_the_details_name_the_pod() -> None:
    error = error_of_response(404, b"no", "web")
    assert (error.details, error.causes) == ({"name": "web", "kind": "pods/log"}, ())


def test_a_kubelet_that_sends_us_elsewhere() -> None:
    assert redirected("https://n:1/").message == 'Get "https://n:1/": redirects forbidden'
