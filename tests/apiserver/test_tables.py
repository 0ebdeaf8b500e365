"""Tests of tables.columns."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.tables import (
    access_modes_text,
    age,
    bare_selector_text,
    between,
    cut_short,
    human_duration,
    labels_text,
    selector_text,
    since,
)

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
def test_human_duration_formats_like_kubectl(span_s: float, text: str) -> None:
    assert human_duration(span_s) == text


def test_durations_between_timestamps_are_formatted() -> None:
    assert since("1970-01-01T00:00:10Z", 75.0) == "65s"
    assert since(None, 75.0) == "<unknown>"
    assert between("1970-01-01T00:00:10Z", "1970-01-01T00:05:10Z") == "5m"
    assert age({"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}, 30.5) == "30s"
    assert age({"metadata": {}}, 30.5) == "<unknown>"


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "1", "a": "2"}}, "a=2,b=1"),
        (
            {
                "matchLabels": {"z": "1"},
                "matchExpressions": [
                    {"key": "m", "operator": "In", "values": ["y", "x"]},
                    {"key": "k", "operator": "NotIn", "values": ["q"]},
                    {"key": "e", "operator": "Exists"},
                    {"key": "f", "operator": "DoesNotExist"},
                ],
            },
            "e,!f,k notin (q),m in (x,y),z=1",
        ),
    ],
)
def test_label_selectors_are_formatted(selector: Document | None, text: str) -> None:
    assert selector_text(selector) == text
    assert bare_selector_text(selector) == text.replace("<none>", "")


def test_labels_access_modes_and_long_lists_are_formatted() -> None:
    assert labels_text({"b": "", "a": "1"}) == "a=1,b="
    assert labels_text({}) == "<none>"
    assert access_modes_text(["ReadWriteOncePod", "ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"]) == (
        "RWO,ROX,RWX,RWOP"
    )
    assert cut_short(["a", "b", "c"], 3) == "a,b,c"
    assert cut_short(["a", "b", "c"], 7) == "a,b,c + 4 more..."
