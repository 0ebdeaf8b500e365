"""Warnings as headers: escaped, never broken, and not too long together."""

from __future__ import annotations

import pytest

from mooring.apiserver.http.reply import warning_headers


@pytest.mark.parametrize(
    ("texts", "headers"),
    [
        pytest.param([], [], id="none"),
        pytest.param(["take care"], ['299 - "take care"'], id="one"),
        pytest.param(['say "a\\b"'], ['299 - "say \\"a\\\\b\\""'], id="quotes and backslashes are escaped"),
        pytest.param(["a\nb", "c\x00", "d\x85", "e"], ['299 - "e"'], id="control characters cannot be sent"),
        pytest.param(["", "é"], ['299 - "é"'], id="other letters can"),
        pytest.param(["a" * 4_096], ['299 - "' + "a" * 4_096 + '"'], id="as long as allowed"),
        pytest.param(["a" * 4_000, "b" * 97], ['299 - "' + "a" * 256 + '"', '299 - "' + "b" * 97 + '"'], id="cut"),
    ],
)
def test_headers(texts: list[str], headers: list[str]) -> None:
    assert warning_headers(texts) == headers


def test_what_comes_after_the_limit_is_left_out() -> None:
    headers = warning_headers([f"{number:03}" + "a" * 500 for number in range(100)])
    assert len(headers) == 16
    assert all(len(header) == 256 + len('299 - ""') for header in headers)
