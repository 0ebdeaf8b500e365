"""What can go wrong between us and the API, as one tree of exceptions.

  ClientError                    a request did not do what was asked
  ├── NoAnswerError              nobody answered: whether the request was carried out is not known
  ├── NotLeadingError            this process does not lead: the request was not sent
  └── StatusError                the server answered, with a Status
      ├── InvalidError           422: the object breaks a rule
      ├── BadRequestError        400: the request cannot be read
      ├── UnauthorizedError      401: nobody knows who we are
      ├── ForbiddenError         403: we may not
      ├── NotFoundError          404: there is no such object
      ├── AlreadyExistsError     409: there is one of that name already
      ├── ConflictError          409: it is not as we thought it was
      ├── ExpiredError           410: the history that we ask for is gone; list again
      ├── TooManyRequestsError   429: later, after `retry_after_s` (or a disruption budget says no)
      └── ServerError            5xx: the server's own trouble

1. `can_help_to_retry` is the one question that callers ask of the tree: the same request, later.
2. `is_outcome_unknown` is the other: such a request may have been carried out. What cannot be done twice (a binding)
   must be looked up before it is tried again.
3. The text of a StatusError is the server's message, to the letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """One field of an object that breaks a rule."""

    reason: str
    message: str
    field: str


class ClientError(Exception):
    """A request did not do what was asked."""

    can_help_to_retry = False
    is_outcome_unknown = False


class NoAnswerError(ClientError):
    """Nobody answered: the connection failed or broke, or the time was over."""

    can_help_to_retry = True
    is_outcome_unknown = True


class NotLeadingError(ClientError):
    """This process does not lead, so the request was not sent."""


class StatusError(ClientError):
    """The server answered with a Status."""

    code = 0
    reason = ""

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str | None = None,
        causes: Sequence[Cause] = (),
        details: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else self.code
        self.reason = reason if reason is not None else self.reason
        self.causes = tuple(causes)
        self.details = dict(details or {})
        """`name`, `group`, `kind` and `uid` of the object that it is about, as far as the server tells."""
        self.has_details = details is not None
        """Whether the server tells details at all, be they empty."""
        self.retry_after_s = retry_after_s


class InvalidError(StatusError):
    code, reason = 422, "Invalid"


class BadRequestError(StatusError):
    code, reason = 400, "BadRequest"


class UnauthorizedError(StatusError):
    code, reason = 401, "Unauthorized"


class ForbiddenError(StatusError):
    code, reason = 403, "Forbidden"


class NotFoundError(StatusError):
    code, reason = 404, "NotFound"


class AlreadyExistsError(StatusError):
    code, reason = 409, "AlreadyExists"


class ConflictError(StatusError):
    code, reason = 409, "Conflict"


class ExpiredError(StatusError):
    code, reason = 410, "Expired"
    continue_token = ""
    """For a list in pages: with it the list goes on as of now, inconsistently."""


class TooManyRequestsError(StatusError):
    code, reason = 429, "TooManyRequests"
    can_help_to_retry = True


class ServerError(StatusError):
    code, reason = 500, "InternalError"
    can_help_to_retry = True
