"""Conditions of definitions."""

from __future__ import annotations

from mooring.apiserver.custom.conditions import condition, condition_of, is_true, with_condition
from tests.apiserver.custom.definitions import definition

NOW, LATER = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"


def test_conditions_are_found() -> None:
    assert is_true(definition(), "Established")
    assert not is_true(definition(accepted=False), "Established")
    assert condition_of(definition(), "Terminating") is None


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    wanted = condition("Terminating", is_met=True, reason="R", message="m")
    status = with_condition({}, wanted, NOW)
    assert status == {"conditions": [{**wanted, "lastTransitionTime": NOW}]}
    other = condition("Terminating", is_met=True, reason="S", message="n")
    assert with_condition(status, other, LATER) == {"conditions": [{**other, "lastTransitionTime": NOW}]}
    done = condition("Terminating", is_met=False, reason="S", message="n")
    assert with_condition(status, done, LATER) == {"conditions": [{**done, "lastTransitionTime": LATER}]}
