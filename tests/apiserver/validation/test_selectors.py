"""What is wrong with selectors."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.selectors import label_selector_faults, plain_selector_matches
from tests.apiserver.pod_builders import messages

BAD_VALUE: Document = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}
ODD: Document = {"matchExpressions": [{"key": "a", "operator": "Near"}]}


@pytest.mark.parametrize(
    ("selector", "faults"),
    [
        pytest.param(None, [], id="none"),
        pytest.param({}, [], id="everything"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]}]},
            [
                "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                "s.matchExpressions[1].values: Forbidden: "
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ],
            id="values missing, and too many",
        ),
        pytest.param(
            ODD,
            ['s.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator'],
            id="an operator that nobody knows",
        ),
    ],
)
def test_selectors(selector: Document | None, faults: list[str]) -> None:
    assert messages(label_selector_faults(selector, "s")) == faults


def test_values_and_operators_can_be_overlooked() -> None:
    assert label_selector_faults(BAD_VALUE, "s") != []
    assert label_selector_faults(BAD_VALUE, "s", tolerates_values=True) == []
    assert label_selector_faults(ODD, "s", tolerates_operators=True) == []


def test_plain_selectors() -> None:
    assert plain_selector_matches({"a": "b"}, {"a": "b", "c": "d"})
    assert not plain_selector_matches({"a": "b"}, {})
