"""When the store fails: what its clients are told.

Comes in   a `StoreError`
Goes out   a `StatusError`; which says whether trying again can help
"""

from __future__ import annotations

from mooring.client.errors import ServerError, StatusError, TooManyRequestsError
from mooring.store.interface import (
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreUnreachable,
    ValueTooLarge,
    WriteRefused,
)

RETRY_S = 1.0


def store_error_status(error: StoreError) -> StatusError:
    """The status that a client gets for an error of the store."""
    match error:
        case ValueTooLarge():
            return StatusError(f"Request entity too large: {error}", code=413, reason="RequestEntityTooLarge")
        case StoreBusy():
            return TooManyRequestsError(str(error), retry_after_s=RETRY_S)
        case StoreClosed() | StoreUnreachable():
            return ServerError(str(error), code=503, reason="ServiceUnavailable", retry_after_s=RETRY_S)
        case OutcomeUnknown():
            return ServerError(f"Timeout: {error}", code=504, reason="Timeout")
        case WriteRefused():
            return ServerError(str(error), code=507, reason="InsufficientStorage")
        case _:
            return ServerError(f"Internal error occurred: {error}")
