"""The status of a disruption budget."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.views.meta import Condition, LabelSelector, LabelSelectorRequirement, OwnerReference
from mooring.api.views.workloads import PodDisruptionBudget
from mooring.controllers.disruption.plan import (
    DisruptedPods,
    Expected,
    Scale,
    disrupted_pods,
    expected_pods,
    healthy_pods,
    plan_failure,
    plan_status,
    selector_text,
    stale_target_in_s,
    status_document,
)
from mooring.controllers.pod_indexes import PodGroup
from mooring.kit.clock import format_rfc3339
from tests.controllers.builders import NOW_S, pod_view

NOW = format_rfc3339(NOW_S)
LONG_AGO = format_rfc3339(NOW_S - 121)
JUST_NOW = format_rfc3339(NOW_S - 1)


def budget(status: dict[str, Any] | None = None, generation: int = 1, **spec: Any) -> PodDisruptionBudget:
    document = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default", "generation": generation},
        "spec": spec,
        "status": status or {},
    }
    return decode_as(PodDisruptionBudget, msgspec.json.encode(document))


def group(count: int, healthy: int = 0, owner: str = "") -> PodGroup:
    reference = OwnerReference(kind="ReplicaSet", uid=owner, controller=True) if owner else None
    found = PodGroup({"app": "x"}, reference)
    found.names = {f"{owner or 'bare'}-{number}": number < healthy for number in range(count)}
    found.healthy = healthy
    return found


@pytest.mark.parametrize(
    ("spec", "groups", "scales", "expected"),
    [
        pytest.param({"minAvailable": 2}, [group(3)], {}, Expected(3, 2), id="a number counts the pods there are"),
        pytest.param({"minAvailable": 5}, [], {}, Expected(0, 5), id="even if there are none"),
        pytest.param({}, [group(3)], {}, Expected(0, 0), id="a budget that says nothing"),
        pytest.param(
            {"minAvailable": "50%"}, [group(2, owner="a")], {"a": 5}, Expected(5, 3), id="a share of what is wanted"
        ),
        pytest.param({"maxUnavailable": 2}, [group(7, owner="a")], {"a": 7}, Expected(7, 5), id="all but two"),
        pytest.param({"maxUnavailable": "30%"}, [group(7, owner="a")], {"a": 7}, Expected(7, 4), id="rounded up"),
        pytest.param({"maxUnavailable": 9}, [group(1, owner="a")], {"a": 1}, Expected(1, 0), id="never below none"),
        pytest.param({"maxUnavailable": 1}, [group(3)], {}, Expected(0, 0, True), id="pods without an owner"),
        pytest.param(
            {"maxUnavailable": 1},
            [group(1, owner="a"), group(1, owner="b"), group(1)],
            {"a": 3, "b": 4},
            Expected(7, 6, True),
            id="several owners, and one pod without",
        ),
    ],
)
def test_pods_are_expected(spec: Any, groups: list[PodGroup], scales: dict[str, int], expected: Expected) -> None:
    found = {uid: Scale(f"controller of {uid}", replicas) for uid, replicas in scales.items()}
    assert expected_pods(budget(**spec), groups, found) == expected


def test_sets_of_one_deployment_are_counted_once() -> None:
    scales = {"old": Scale("deployment", 4), "new": Scale("deployment", 4)}
    groups = [group(1, owner="old"), group(4, owner="new")]
    assert expected_pods(budget(maxUnavailable=1), groups, scales) == Expected(4, 3)


@pytest.mark.parametrize(
    ("expected", "healthy", "allowed", "condition"),
    [
        pytest.param(Expected(3, 2), 3, 1, ("True", "SufficientPods"), id="one may go"),
        pytest.param(Expected(3, 2), 2, 0, ("False", "InsufficientPods"), id="none may go"),
        pytest.param(Expected(3, 5), 3, 0, ("False", "InsufficientPods"), id="more are wanted than there are"),
        pytest.param(Expected(0, 0), 3, 0, ("False", "InsufficientPods"), id="nothing is known"),
    ],
)
def test_disruptions_are_allowed(expected: Expected, healthy: int, allowed: int, condition: tuple[str, str]) -> None:
    status = plan_status(budget(), expected, healthy, {}, NOW)
    assert status is not None
    assert status.disruptions_allowed == allowed
    assert [(each.status, each.reason) for each in status.conditions] == [condition]
    assert status_document(status)["conditions"][0]["message"] == ""


def test_a_status_that_is_right_is_not_written_again() -> None:
    status = plan_status(budget(), Expected(3, 2), 3, {}, NOW)
    assert status is not None
    known = budget(status_document(status))
    assert plan_status(known, Expected(3, 2), 3, {}, JUST_NOW) is None
    changed = plan_status(known, Expected(3, 1), 3, {}, JUST_NOW)
    assert changed is not None
    assert changed.conditions[0].last_transition_time == NOW, "the status of the condition is the same"
    assert plan_status(budget(status_document(status), generation=2), Expected(3, 2), 3, {}, NOW) is not None


def test_what_cannot_be_computed_allows_nothing() -> None:
    failed = plan_failure(budget({"disruptionsAllowed": 3, "expectedPods": 4}), "no such owner", NOW)
    assert failed is not None
    assert (failed.disruptions_allowed, failed.expected_pods) == (0, 4)
    assert (failed.conditions[0].reason, failed.conditions[0].message) == ("SyncFailed", "no such owner")
    assert plan_failure(budget(status_document(failed)), "no such owner", JUST_NOW) is None


@pytest.mark.parametrize(
    ("since", "going", "kept", "overdue"),
    [
        pytest.param(JUST_NOW, False, ["p"], 0, id="its eviction is awaited"),
        pytest.param(JUST_NOW, True, [], 0, id="it goes"),
        pytest.param(LONG_AGO, False, [], 1, id="it should have gone long ago"),
    ],
)
def test_a_disrupted_pod(since: str, going: bool, kept: list[str], overdue: int) -> None:
    known = budget({"disruptedPods": {"p": since}})
    found = disrupted_pods(known, [pod_view("p", going=going), pod_view("other")], NOW_S)
    assert [*found.since] == kept
    assert len(found.overdue) == overdue
    assert (found.next_s is not None) is bool(kept)


def test_a_pod_whose_eviction_is_awaited_is_not_healthy() -> None:
    groups = [group(3, healthy=3)]
    assert healthy_pods(groups, DisruptedPods({"bare-0": JUST_NOW}, [], None), NOW_S) == 2
    assert healthy_pods(groups, DisruptedPods({}, [], None), NOW_S) == 3


@pytest.mark.parametrize(
    ("condition", "phase", "left_s"),
    [
        pytest.param(None, "Running", None, id="no disruption requested"),
        pytest.param(("True", "EvictionByEvictionAPI", JUST_NOW), "Running", 119.0, id="it is to be disrupted"),
        pytest.param(("True", "EvictionByEvictionAPI", LONG_AGO), "Running", 0.0, id="it should have been long ago"),
        pytest.param(("False", "", LONG_AGO), "Running", None, id="that was taken back"),
        pytest.param(("True", "TerminationByKubelet", LONG_AGO), "Running", None, id="the kubelet ends it"),
        pytest.param(("True", "EvictionByEvictionAPI", LONG_AGO), "Failed", None, id="it has ended"),
    ],
)
def test_a_target_is_stale(condition: tuple[str, str, str] | None, phase: str, left_s: float | None) -> None:
    pod = pod_view("p", phase=phase)
    if condition is not None:
        status, reason, since = condition
        target = Condition(type="DisruptionTarget", status=status, reason=reason, last_transition_time=since)
        pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=(target,)))
    assert stale_target_in_s(pod, NOW_S) == left_s


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(None, "nil", id="none"),
        pytest.param(
            LabelSelector(match_labels={"b": "2", "a": "1"}),
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{},}",
            id="labels",
        ),
        pytest.param(
            LabelSelector(match_expressions=(LabelSelectorRequirement(key="k", operator="In", values=("x", "y")),)),
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{"
            "LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}",
            id="expressions",
        ),
    ],
)
def test_a_selector_is_written_as_go_writes_it(selector: LabelSelector | None, text: str) -> None:
    assert selector_text(selector) == text
