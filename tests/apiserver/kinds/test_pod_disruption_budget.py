"""Tests of kinds.pod_disruption_budget."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod_disruption_budget import validate_disruption_budget, validate_disruption_budget_status
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, changed, created, updated


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="an empty one"),
        pytest.param({"minAvailable": "50%", "selector": {}}, [], id="half of everything"),
        pytest.param(
            {"minAvailable": 1, "maxUnavailable": 2},
            [
                'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":2,'
                '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set'
            ],
            id="minAvailable and maxUnavailable",
        ),
        pytest.param(
            {"maxUnavailable": "101%"},
            ['spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
            id="more than 100 percent",
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
def test_disruption_budget_specs_are_validated(spec: Document, errors: list[str]) -> None:
    assert messages(validate_disruption_budget(spec, None, "spec")) == errors


def test_unchanged_invalid_selector_values_are_accepted() -> None:
    bad = {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}}
    assert len(validate_disruption_budget(bad, None, "spec")) == 1
    assert validate_disruption_budget(bad, bad, "spec") == []


def test_negative_counts_in_a_disruption_budget_status_are_invalid() -> None:
    assert messages(validate_disruption_budget_status({"currentHealthy": -1}, "status")) == [
        "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0"
    ]


def test_a_new_disruption_budget_allows_no_disruptions() -> None:
    outcome = created(body("PodDisruptionBudget", metadata__name="Any_Name"))
    assert outcome.errors == []
    assert outcome.obj["status"] == {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }


def test_an_update_of_the_spec_increments_the_generation() -> None:
    old = created(body("PodDisruptionBudget")).obj
    outcome = updated(body("PodDisruptionBudget", spec__minAvailable=2), old)
    assert outcome.errors == []
    assert outcome.obj["metadata"]["generation"] == 2


def test_a_status_update_with_negative_counts_is_rejected() -> None:
    old = created(body("PodDisruptionBudget")).obj
    raw = {**changed(old, status__expectedPods=-1), "kind": "PodDisruptionBudget", "apiVersion": "policy/v1"}
    assert updated(raw, old, "status").errors == [
        "status.expectedPods: Invalid value: -1: must be greater than or equal to 0"
    ]
