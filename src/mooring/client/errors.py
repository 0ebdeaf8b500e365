"""The exceptions of clients, as one tree.

  ClientError                    a request failed
  ├── NoAnswerError              no answer arrived: the outcome of the request is unknown
  ├── NotLeadingError            this process does not lead: the request was not sent
  └── StatusError                the server answered, with a Status
      ├── InvalidError           422: the object breaks a rule
      ├── BadRequestError        400: the request cannot be read
      ├── UnauthorizedError      401: the user is not authenticated
      ├── ForbiddenError         403: the user is not authorized
      ├── NotFoundError          404: there is no such object
      ├── AlreadyExistsError     409: an object of this name exists
      ├── ConflictError          409: the object has changed
      ├── ExpiredError           410: the requested history is gone; list again
      ├── TooManyRequestsError   429: retry after `retry_after_s`, or a disruption budget forbids it
      └── ServerError            5xx: the server failed

1. `can_help_to_retry`: the same request may succeed later.
2. `is_outcome_unknown`: the server may have carried out the request. Before a binding is repeated, its pod is read.
3. The text of a `StatusError` is exactly the server's message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One field of an object that breaks a rule."""

    reason: str
    message: str
    field: str


class ClientError(Exception):
    """A request failed."""

    can_help_to_retry = False
    is_outcome_unknown = False


class NoAnswerError(ClientError):
    """No answer arrived: the connection failed or broke, or the time was over."""

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
        causes: Sequence[StatusCause] = (),
        details: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else self.code
        self.reason = reason if reason is not None else self.reason
        self.causes = tuple(causes)
        self.details = dict(details or {})
        """`name`, `group`, `kind` and `uid` of the object, as far as the server sent them."""
        self.has_details = details is not None
        """Whether the response has `details`, even if empty."""
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
    """The continue token with which a paged list continues at the current revision, inconsistently."""


class TooManyRequestsError(StatusError):
    code, reason = 429, "TooManyRequests"
    can_help_to_retry = True


class ServerError(StatusError):
    code, reason = 500, "InternalError"
    can_help_to_retry = True
