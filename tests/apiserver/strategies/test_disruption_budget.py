"""Disruption budgets, created and changed."""

from __future__ import annotations

from tests.apiserver.workload_builders import body, changed, created, updated


def test_a_new_one_allows_nothing_yet() -> None:
    outcome = created(body("PodDisruptionBudget", metadata__name="Any_Name"))
    assert outcome.faults == []
    assert outcome.obj["status"] == {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }


def test_the_spec_may_change_and_counts() -> None:
    old = created(body("PodDisruptionBudget")).obj
    outcome = updated(body("PodDisruptionBudget", spec__minAvailable=2), old)
    assert outcome.faults == []
    assert outcome.obj["metadata"]["generation"] == 2


def test_a_status_is_not_negative() -> None:
    old = created(body("PodDisruptionBudget")).obj
    raw = {**changed(old, status__expectedPods=-1), "kind": "PodDisruptionBudget", "apiVersion": "policy/v1"}
    assert updated(raw, old, "status").faults == [
        "status.expectedPods: Invalid value: -1: must be greater than or equal to 0"
    ]
