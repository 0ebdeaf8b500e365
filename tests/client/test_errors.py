"""The class hierarchy of client errors: which errors can be retried, and which have an unknown outcome."""

from __future__ import annotations

import pytest

from mooring.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    ClientError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NoAnswerError,
    NotFoundError,
    NotLeadingError,
    ServerError,
    StatusCause,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
)

AGAIN, UNKNOWN = "the same request may help later", "it may have been carried out"

ANSWERS: dict[type[ClientError], set[str]] = {
    ClientError: set(),
    NoAnswerError: {AGAIN, UNKNOWN},
    NotLeadingError: set(),
    StatusError: set(),
    InvalidError: set(),
    BadRequestError: set(),
    UnauthorizedError: set(),
    ForbiddenError: set(),
    NotFoundError: set(),
    AlreadyExistsError: set(),
    ConflictError: set(),
    ExpiredError: set(),
    TooManyRequestsError: {AGAIN},
    ServerError: {AGAIN},
}


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_can_help_to_retry_and_is_outcome_unknown(kind: type[ClientError]) -> None:
    error = kind("oops")
    found = {text for text, is_so in ((AGAIN, error.can_help_to_retry), (UNKNOWN, error.is_outcome_unknown)) if is_so}
    assert found == ANSWERS[kind]


def test_the_table_contains_all_error_classes() -> None:
    def below(kind: type[ClientError]) -> set[type[ClientError]]:
        found = {kind}
        for subclass in kind.__subclasses__():
            if subclass.__module__ == ClientError.__module__:
                found |= below(subclass)
        return found

    assert below(ClientError) == set(ANSWERS)


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        (StatusError, 0, ""),
        (InvalidError, 422, "Invalid"),
        (BadRequestError, 400, "BadRequest"),
        (UnauthorizedError, 401, "Unauthorized"),
        (ForbiddenError, 403, "Forbidden"),
        (NotFoundError, 404, "NotFound"),
        (AlreadyExistsError, 409, "AlreadyExists"),
        (ConflictError, 409, "Conflict"),
        (ExpiredError, 410, "Expired"),
        (TooManyRequestsError, 429, "TooManyRequests"),
        (ServerError, 500, "InternalError"),
    ],
)
def test_default_code_and_reason_of_status_errors(kind: type[StatusError], code: int, reason: str) -> None:
    plain, found = kind("oops"), kind("oops", code=599, reason="")
    assert (plain.code, plain.reason) == (code, reason)
    assert (found.code, found.reason) == (599, ""), "an empty reason overrides the default"
    assert (kind.code, kind.reason) == (code, reason), "an instance does not change its class"


def test_the_text_of_an_error_is_the_message_of_the_server() -> None:
    error = ConflictError('Operation cannot be fulfilled on pods "p": 100 %')
    assert str(error) == error.message == 'Operation cannot be fulfilled on pods "p": 100 %'


def test_a_status_error_without_details() -> None:
    error = NotFoundError("gone")
    assert (error.causes, error.details, error.has_details, error.retry_after_s) == ((), {}, False, None)


def test_causes_and_details_are_copied() -> None:
    details = {"name": "p"}
    causes = [StatusCause("FieldValueInvalid", "no", "spec")]
    error = TooManyRequestsError("later", causes=causes, details=details, retry_after_s=2.5)
    details["name"] = "q"
    causes.clear()
    assert error.details == {"name": "p"}
    assert error.causes == (StatusCause("FieldValueInvalid", "no", "spec"),)
    assert error.retry_after_s == 2.5


def test_details_may_be_present_and_empty() -> None:
    error = NotFoundError("gone", details={})
    assert (error.details, error.has_details) == ({}, True)


def test_an_expired_error_without_a_list_has_no_continue_token() -> None:
    assert ExpiredError("too old").continue_token == ""
