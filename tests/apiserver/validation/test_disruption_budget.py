"""What is wrong with disruption budgets."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.validation.disruption_budget import (
    disruption_budget_faults,
    disruption_budget_status_faults,
)
from tests.apiserver.field_errors import messages


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, [], id="an empty one"),
        pytest.param({"minAvailable": "50%", "selector": {}}, [], id="half of everything"),
        pytest.param(
            {"minAvailable": 1, "maxUnavailable": 2},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":2,'
                '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'
            ],
            id="two budgets in one",
        ),
        pytest.param(
            {"maxUnavailable": "101%"},
            ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
            id="more than all",
        ),
        pytest.param(
            {"unhealthyPodEvictionPolicy": ""},
            [
                'spec.unhealthyPodEvictionPolicy: Unsupported value: "": '
                'supported values: "AlwaysAllow", "IfHealthyBudget"'
            ],
            id="an unknown policy",
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            [
                "spec.selector.matchExpressions[0].values: Required value: "
                "must be specified when `operator` is 'In' or 'NotIn'"
            ],
            id="a selector without values",
        ),
    ],
)
def test_specs(spec: Document, faults: list[str]) -> None:
    assert messages(disruption_budget_faults(spec, None, "spec")) == faults


def test_bad_values_in_the_selector_may_stay() -> None:
    bad = {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}}
    assert len(disruption_budget_faults(bad, None, "spec")) == 1
    assert disruption_budget_faults(bad, bad, "spec") == []


def test_counts_are_not_negative() -> None:
    assert messages(disruption_budget_status_faults({"currentHealthy": -1}, "status")) == [
        "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0"
    ]
