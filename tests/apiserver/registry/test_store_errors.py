"""When the store fails: what clients are told, and whether they may try again."""

from __future__ import annotations

import pytest

from mooring.apiserver.errors import STORE_RETRY_S, store_error_status
from mooring.store.interface import (
    OutcomeUnknown,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreUnreachable,
    ValueTooLarge,
    WriteRefused,
)


@pytest.mark.parametrize(
    ("error", "code", "reason", "message", "may_retry", "after_s"),
    [
        pytest.param(
            ValueTooLarge("2 MB"),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: 2 MB",
            False,
            None,
            id="it will never fit",
        ),
        pytest.param(StoreBusy("busy"), 429, "TooManyRequests", "busy", True, STORE_RETRY_S, id="later"),
        pytest.param(StoreClosed("shut"), 503, "ServiceUnavailable", "shut", True, STORE_RETRY_S, id="it was shut"),
        pytest.param(StoreUnreachable("away"), 503, "ServiceUnavailable", "away", True, STORE_RETRY_S, id="it is away"),
        pytest.param(OutcomeUnknown("lost"), 504, "Timeout", "Timeout: lost", True, None, id="it may have been done"),
        pytest.param(WriteRefused("full"), 507, "InsufficientStorage", "full", True, None, id="no room"),
        pytest.param(
            StoreError("oops"), 500, "InternalError", "Internal error occurred: oops", True, None, id="anything else"
        ),
    ],
)
def test_each_trouble_has_its_words(
    error: StoreError, code: int, reason: str, message: str, may_retry: bool, after_s: float | None
) -> None:
    told = store_error_status(error)
    assert (told.code, told.reason, told.message) == (code, reason, message)
    assert (told.can_help_to_retry, told.retry_after_s) == (may_retry, after_s)
