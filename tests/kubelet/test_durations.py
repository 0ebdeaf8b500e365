"""Durations as people write them and as Go prints them."""

from __future__ import annotations

import pytest

from mooring.kubelet.durations import DurationError, format_whole_duration, parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("500ms", 0.5), ("10s", 10.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("2h45m", 9900.0)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1 s", "1d", "1s2"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration; wanted one such as"):
        parse_duration_s(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(10, "10s"), (20, "20s"), (80, "1m20s"), (160.9, "2m40s"), (300, "5m0s"), (3600, "1h0m0s"), (0, "0s")],
)
def test_a_duration_is_printed_as_go_does(seconds: float, text: str) -> None:
    assert format_whole_duration(seconds) == text
