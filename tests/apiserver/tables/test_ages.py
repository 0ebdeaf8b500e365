from __future__ import annotations

import pytest

from mooring.apiserver.tables.ages import age, between, human_duration, since

MINUTE, HOUR, DAY = 60, 3600, 86_400


@pytest.mark.parametrize(
    ("span_s", "text"),
    [
        (-2.0, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (3 * MINUTE + 20, "3m20s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (5 * HOUR + 30 * MINUTE, "5h30m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (3 * DAY + 4 * HOUR, "3d4h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (2 * 365 * DAY - 1, "729d"),
        (2 * 365 * DAY, "2y"),
        (2 * 365 * DAY + 35 * DAY, "2y35d"),
        (8 * 365 * DAY + 300 * DAY, "8y"),
    ],
)
def test_a_span_in_a_few_letters(span_s: float, text: str) -> None:
    assert human_duration(span_s) == text


def test_moments() -> None:
    assert since("1970-01-01T00:00:10Z", 75.0) == "65s"
    assert since(None, 75.0) == "<unknown>"
    assert between("1970-01-01T00:00:10Z", "1970-01-01T00:05:10Z") == "5m"
    assert age({"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}, 30.5) == "30s"
    assert age({"metadata": {}}, 30.5) == "<unknown>"
