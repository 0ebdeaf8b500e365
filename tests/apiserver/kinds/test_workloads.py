"""Tests of kinds.workloads."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.defaults import WithEmptyLabels
from mooring.apiserver.kinds.workloads import (
    above_100_percent_faults,
    decremented_faults,
    int_or_percent,
    int_or_percent_faults,
    mismatch_faults,
    nonnegative_faults,
    pod_name_warnings,
    selector_matcher,
    selector_value,
)
from tests.apiserver.field_errors import messages

PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


@pytest.mark.parametrize(
    ("value", "amount", "faults"),
    [
        pytest.param(3, 3, [], id="a number"),
        pytest.param(-1, -1, ["f: Invalid value: -1: must be greater than or equal to 0"], id="below zero"),
        pytest.param("25%", 25, [], id="a percentage"),
        pytest.param("200%", 200, ['f: Invalid value: "200%": must not be greater than 100%'], id="above all"),
        pytest.param("5", 5, [f'f: Invalid value: "5": {PERCENT}'], id="a number as text is none, but counts"),
        pytest.param("x%", 0, [f'f: Invalid value: "x%": {PERCENT}'], id="no number"),
        pytest.param("-5%", 0, [f'f: Invalid value: "-5%": {PERCENT}'], id="a negative percentage"),
    ],
)
def test_numbers_and_percentages(value: int | str, amount: int, faults: list[str]) -> None:
    assert int_or_percent(value) == amount
    assert messages(int_or_percent_faults(value, "f") + above_100_percent_faults(value, "f")) == faults


def test_an_absent_count_is_no_fault() -> None:
    assert nonnegative_faults(None, "f") == []
    assert int_or_percent(None) == 0


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        pytest.param({}, "null", id="no labels"),
        pytest.param({"metadata": {}}, "null", id="no labels in the metadata"),
        pytest.param({"metadata": WithEmptyLabels()}, "{}", id="empty labels"),
        pytest.param({"metadata": {"labels": {"z": "1", "a": "2"}}}, '{"a":"2","z":"1"}', id="other labels, sorted"),
    ],
)
def test_a_selector_must_select_its_own_pods(template: Document, shown: str) -> None:
    matcher = selector_matcher({"matchLabels": {"app": "x"}})
    assert matcher is not None
    assert messages(mismatch_faults(matcher, template, "t")) == [
        f"t.metadata.labels: Invalid value: {shown}: `selector` does not match template `labels`"
    ]


@pytest.mark.parametrize(
    ("selector", "is_sound"),
    [
        pytest.param(None, True, id="none matches nothing"),
        pytest.param({}, True, id="empty matches everything"),
        pytest.param({"matchLabels": {"a": "b c"}}, False, id="a bad value"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Maybe"}]}, False, id="an unknown operator"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, True, id="a set"),
    ],
)
def test_which_selectors_can_be_compiled(selector: Document | None, is_sound: bool) -> None:
    assert (selector_matcher(selector) is not None) is is_sound


def test_a_selector_is_shown_in_the_order_of_its_type() -> None:
    selector = {
        "matchExpressions": [{"values": ["v"], "operator": "In", "key": "k"}],
        "matchLabels": {"b": "1", "a": "2"},
    }
    shown = selector_value(selector)
    assert shown is not None
    assert list(shown) == ["matchLabels", "matchExpressions"]
    assert list(shown["matchLabels"]) == ["a", "b"]
    assert list(shown["matchExpressions"][0]) == ["key", "operator", "values"]


@pytest.mark.parametrize(
    ("new", "old", "faults"),
    [
        pytest.param({}, {}, [], id="never counted"),
        pytest.param({"collisionCount": 3}, {"collisionCount": 2}, [], id="grows"),
        pytest.param(
            {"collisionCount": 1},
            {"collisionCount": 2},
            ["s.collisionCount: Invalid value: 1: cannot be decremented"],
            id="shrinks",
        ),
        pytest.param(
            {}, {"collisionCount": 2}, ["s.collisionCount: Invalid value: 0: cannot be decremented"], id="gone"
        ),
    ],
)
def test_collisions_are_only_counted_up(new: Document, old: Document, faults: list[str]) -> None:
    assert messages(decremented_faults(new, old, "s")) == faults


@pytest.mark.parametrize(
    ("name", "count"),
    [pytest.param("web", 0, id="a label"), pytest.param("web.v2", 1, id="dots"), pytest.param("w" * 64, 1, id="long")],
)
def test_names_that_make_bad_hostnames(name: str, count: int) -> None:
    assert len(pod_name_warnings(name)) == count
