"""Errors of API servers: from an answer without success, or an ERROR event of a watch, to the `StatusError` to raise.

1. In a Status, the reason selects the class and the message is the text, unchanged.
2. An answer that is not a Status comes from a proxy or load balancer. Then the code selects the class, the text is that
   of client-go, and the body becomes a cause.
3. A success whose body is not an object of the expected kind comes from something in between, too. Whether the API
   server has seen the request is unknown.
"""

from collections.abc import Mapping, Sequence

import msgspec

from mooring.api.views.meta import View
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
    ServerError,
    StatusCause,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
)

FOREIGN_TEXT_BYTES_MAX = 2048
FOREIGN_QUOTE_BYTES_MAX = 80
_RETRY_AFTER = "Retry-After"


class StatusCauseView(View):
    reason: str | None = ""
    message: str | None = ""
    field: str | None = ""


class StatusDetailsView(View):
    name: str | None = ""
    group: str | None = ""
    kind: str | None = ""
    uid: str | None = ""
    causes: tuple[StatusCauseView, ...] | None = ()
    retry_after_seconds: int | None = None


class StatusView(View):
    kind: str | None = ""
    message: str | None = ""
    reason: str | None = ""
    code: int | None = 0
    details: StatusDetailsView | None = None


class _KindView(msgspec.Struct):
    kind: str


_decoder = msgspec.json.Decoder(StatusView)
_kind_decoder = msgspec.json.Decoder(_KindView)
_KIND_FIRST = b'{"kind":"'

_BY_REASON: dict[str, type[StatusError]] = {
    "Invalid": InvalidError,
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Expired": ExpiredError,
    "Gone": ExpiredError,
    "TooManyRequests": TooManyRequestsError,
}
_BY_CODE: dict[int, type[StatusError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: TooManyRequestsError,
}
# Reason and text of an answer that is not a Status, as in client-go. None: the body is the text.
_FOREIGN: dict[int, tuple[str, str | None]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", None),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", None),
    409: ("Conflict", "the server reported a conflict"),
    415: ("UnsupportedMediaType", None),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def error_of_answer(code: int, headers: Mapping[str, str], body: bytes, *, method: str, about: str) -> StatusError:
    """The error of an answer without success. `about` names the resource and the object."""
    status = _status_in(body)
    if status is not None:
        return error_of_status(status, code=code, retry_after_s=retry_after_s(headers))
    return _foreign_error(code, headers, body, method, about)


def error_of_event(raw: bytes) -> StatusError:
    """The error in an ERROR event of a watch."""
    status = _status_in(raw)
    if status is None:
        text = raw[:FOREIGN_TEXT_BYTES_MAX].decode(errors="replace")
        return ServerError(f"the watch reports an error that cannot be read: {text}")
    return error_of_status(status)


def error_of_status(status: StatusView, *, code: int = 0, retry_after_s: float | None = None) -> StatusError:
    code = status.code or code
    details = status.details or StatusDetailsView()
    kind = _BY_REASON.get(status.reason or "") or _by_code(code)
    if retry_after_s is None and details.retry_after_seconds:
        retry_after_s = float(details.retry_after_seconds)
    named = {"name": details.name, "group": details.group, "kind": details.kind, "uid": details.uid}
    return kind(
        status.message or "",
        code=code or None,
        reason=status.reason or None,
        causes=[
            StatusCause(cause.reason or "", cause.message or "", cause.field or "") for cause in details.causes or ()
        ],
        details={name: value for name, value in named.items() if value},
        retry_after_s=retry_after_s,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The Retry-After header in seconds; None if it is absent or a date, as in client-go."""
    text = headers.get(_RETRY_AFTER, "").strip()
    return float(text) if text.isascii() and text.isdecimal() else None


def kind_in(body: bytes) -> str:
    """The kind of the object in a body; empty if it is not an object with a kind."""
    if body.startswith(_KIND_FIRST):  # as API servers write, except for custom resources
        return body[len(_KIND_FIRST) : body.find(b'"', len(_KIND_FIRST))].decode(errors="replace")
    try:
        return _kind_decoder.decode(body).kind
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def unexpected_answer(
    method: str, about: str, expected: Sequence[str], headers: Mapping[str, str], body: bytes
) -> ClientError:
    """The error of an answer with a success code that is not the API's: something in between has answered."""
    content_type = headers.get("Content-Type", "no content type")
    said = body[:FOREIGN_QUOTE_BYTES_MAX].decode(errors="replace")
    text = (
        f"{method} {about}: the response does not come from an API server: "
        f"expected an object of kind {' or '.join(expected)}, got {content_type}: {said!r}"
    )
    return ServerError(text) if method == "GET" else NoAnswerError(f"{text}; the outcome is unknown")


def _status_in(body: bytes) -> StatusView | None:
    try:
        status = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return status if status.kind == "Status" else None


def _by_code(code: int) -> type[StatusError]:
    return _BY_CODE.get(code) or (ServerError if code >= 500 else StatusError)


def _foreign_error(code: int, headers: Mapping[str, str], body: bytes, method: str, about: str) -> StatusError:
    content_type = headers.get("Content-Type", "")
    is_text = not content_type or content_type.startswith("text/")
    found = body[:FOREIGN_TEXT_BYTES_MAX].decode(errors="replace").strip() if is_text else "unknown"
    unknown = f"the server responded with the status code {code} but did not return more information"
    reason, message = _FOREIGN.get(code, ("", unknown))
    kind = _by_code(code)
    if code == 409 and method == "POST":
        reason, kind = "AlreadyExists", AlreadyExistsError
    if code >= 500 and code not in _FOREIGN:
        quoted = msgspec.json.encode(found).decode()
        reason, message = (
            "InternalError",
            f"an error on the server ({quoted}) has prevented the request from succeeding",
        )
    return kind(
        f"{message if message is not None else found} ({method.lower()} {about})",
        code=code,
        reason=reason or None,
        causes=[StatusCause("UnexpectedServerResponse", found, "")],
        retry_after_s=retry_after_s(headers),
    )
