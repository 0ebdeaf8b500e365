"""Error responses of a server are converted to client errors with the server's message."""

from __future__ import annotations

import pytest

from mooring.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    StatusCause,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
)
from mooring.client.http.errors import error_of_answer, error_of_event


def status(reason: str, code: int, more: str = "") -> bytes:
    return f'{{"kind":"Status","message":"so it is","reason":"{reason}","code":{code}{more}}}'.encode()


@pytest.mark.parametrize(
    ("reason", "code", "kind"),
    [
        ("Invalid", 422, InvalidError),
        ("BadRequest", 400, BadRequestError),
        ("Unauthorized", 401, UnauthorizedError),
        ("Forbidden", 403, ForbiddenError),
        ("NotFound", 404, NotFoundError),
        ("AlreadyExists", 409, AlreadyExistsError),
        ("Conflict", 409, ConflictError),
        ("", 409, ConflictError),
        ("Expired", 410, ExpiredError),
        ("Gone", 410, ExpiredError),
        ("TooManyRequests", 429, TooManyRequestsError),
        ("InternalError", 500, ServerError),
        ("Timeout", 504, ServerError),
        ("", 503, ServerError),
        ("MethodNotAllowed", 405, StatusError),
    ],
)
def test_the_reason_determines_the_error_class(reason: str, code: int, kind: type[StatusError]) -> None:
    error = error_of_answer(code, {}, status(reason, code), method="GET", about="pods")
    assert type(error) is kind
    assert (str(error), error.code) == ("so it is", code)
    assert error.reason == (reason or kind.reason)


def test_details_and_causes_are_decoded() -> None:
    more = (
        ',"details":{"name":"web","group":"apps","kind":"deployments","uid":null,"retryAfterSeconds":4,'
        '"causes":[{"reason":"FieldValueInvalid","message":"no","field":"spec.x"},{"message":null}]}'
    )
    error = error_of_answer(422, {}, status("Invalid", 422, more), method="PUT", about="deployments.apps web")
    assert error.details == {"name": "web", "group": "apps", "kind": "deployments"}
    assert error.causes == (StatusCause("FieldValueInvalid", "no", "spec.x"), StatusCause("", "", ""))
    assert error.retry_after_s == 4.0


def test_retry_after_header_is_decoded() -> None:
    error = error_of_answer(429, {"Retry-After": "9"}, status("", 429), method="GET", about="pods")
    assert error.retry_after_s == 9.0


PREVENTED = "has prevented the request from succeeding"


@pytest.mark.parametrize(
    ("code", "method", "body", "kind", "text"),
    [
        pytest.param(
            404, "GET", b"404 page\n", NotFoundError, "the server could not find the requested resource", id="404"
        ),
        pytest.param(403, "GET", b"keep out", ForbiddenError, "keep out", id="403 with a text"),
        pytest.param(409, "POST", b"", AlreadyExistsError, "the server reported a conflict", id="409 for a create"),
        pytest.param(409, "PUT", b"", ConflictError, "the server reported a conflict", id="409 for an update"),
        pytest.param(
            502,
            "GET",
            b'bad "gateway"',
            ServerError,
            f'an error on the server ("bad \\"gateway\\"") {PREVENTED}',
            id="502 with a text",
        ),
        pytest.param(503, "GET", b"", ServerError, "the server is currently unable to handle the request", id="503"),
        pytest.param(
            418,
            "GET",
            b"",
            StatusError,
            "the server responded with the status code 418 but did not return more information",
            id="an unusual code",
        ),
        pytest.param(
            500,
            "GET",
            b'{"kind":"Pod"}',
            ServerError,
            f'an error on the server ("{{\\"kind\\":\\"Pod\\"}}") {PREVENTED}',
            id="an object that is not a Status",
        ),
    ],
)
def test_errors_of_responses_without_a_status(
    code: int, method: str, body: bytes, kind: type[StatusError], text: str
) -> None:
    error = error_of_answer(code, {"Content-Type": "text/plain"}, body, method=method, about="pods web")
    assert type(error) is kind
    assert (str(error), error.code) == (f"{text} ({method.lower()} pods web)", code)
    assert error.causes[0].reason == "UnexpectedServerResponse"


def test_a_binary_body_is_not_quoted() -> None:
    error = error_of_answer(500, {"Content-Type": "image/png"}, b"\x89PNG", method="GET", about="pods")
    assert 'an error on the server ("unknown")' in str(error)


def test_error_events_of_a_watch_are_decoded() -> None:
    assert isinstance(error_of_event(status("Expired", 410)), ExpiredError)
    assert isinstance(error_of_event(b"\xff"), ServerError)
