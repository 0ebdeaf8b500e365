"""What a ReplicaSet needs next, and how it is."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import decode_as
from mooring.api.labels import LabelMatcher
from mooring.api.views.workloads import ReplicationController
from mooring.controllers.pod_indexes import LabelsKey, StateCounts
from mooring.controllers.replicaset.plan import (
    CreateReplicas,
    DeleteReplicas,
    PodCounts,
    count_from_index,
    count_pods,
    plan_size,
    plan_status,
    selector_of,
    status_document,
)
from tests.controllers.builders import NOW_S, pod_view, replica_set_view

NOW = "2026-01-01T00:00:00Z"
LABELS = {"app": "web"}


def counts_by_labels(**counts: int) -> dict[LabelsKey, StateCounts]:
    found = StateCounts()
    for name, count in counts.items():
        setattr(found, name, count)
    return {(("app", "web"),): found}


@pytest.mark.parametrize(
    ("wanted", "active", "action"),
    [
        pytest.param(3, 3, None, id="enough"),
        pytest.param(3, 1, CreateReplicas(2), id="too few"),
        pytest.param(3, 5, DeleteReplicas(2), id="too many"),
        pytest.param(10_000, 0, CreateReplicas(500), id="no more than five hundred come at once"),
        pytest.param(0, 10_000, DeleteReplicas(500), id="or go"),
    ],
)
def test_the_size(wanted: int, active: int, action: object) -> None:
    assert plan_size(replica_set_view("web", replicas=wanted), active) == action


def test_pods_counted_one_by_one() -> None:
    pods = [
        pod_view("a", labels=LABELS, ready_for_s=100),
        pod_view("b", labels=LABELS, ready_for_s=5),
        pod_view("c", labels={}, ready_for_s=None),
    ]
    wanted = replica_set_view("web", minReadySeconds=10)
    assert count_pods(wanted, pods, 4, NOW_S) == PodCounts(3, 2, 2, 1, 4)


@pytest.mark.parametrize(
    ("parts", "labels", "counts"),
    [
        pytest.param({}, LABELS, PodCounts(3, 3, 2, 2, 1), id="the index is enough"),
        pytest.param({"minReadySeconds": 5}, LABELS, None, id="who is available must be looked up"),
        pytest.param({}, {"app": "other"}, None, id="who must be released must be looked up"),
    ],
)
def test_pods_counted_by_the_tally(parts: dict[str, Any], labels: dict[str, str], counts: PodCounts | None) -> None:
    wanted = replica_set_view("web", **parts)
    found = {tuple(labels.items()): counts_by_labels(all=4, active=3, ready=2, terminating=1)[(("app", "web"),)]}
    assert count_from_index(wanted, selector_of(wanted), found) == counts


def test_pods_that_do_not_match_do_not_matter_if_they_are_finished() -> None:
    wanted = replica_set_view("web")
    found: dict[LabelsKey, StateCounts] = {(("app", "other"),): counts_by_labels(all=2)[(("app", "web"),)]}
    assert count_from_index(wanted, selector_of(wanted), found) == PodCounts()


def test_fully_labeled_are_those_with_all_labels_of_the_template() -> None:
    wanted = replica_set_view("web", template={"metadata": {"labels": {"app": "web", "more": "x"}}})
    counts = count_from_index(wanted, LabelMatcher(), counts_by_labels(all=3, active=3))
    assert counts == PodCounts(active=3)


def test_the_status() -> None:
    status = plan_status(replica_set_view("web", replicas=3), PodCounts(3, 3, 2, 1, 0), None, NOW)
    assert status_document(status) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }


def test_a_replication_controller_does_not_tell_of_terminating_pods() -> None:
    wanted = decode_as(ReplicationController, b'{"metadata":{"name":"rc","generation":2},"spec":{"replicas":1}}')
    assert status_document(plan_status(wanted, PodCounts(terminating=1), None, NOW)) == {
        "replicas": 0,
        "observedGeneration": 2,
    }


@pytest.mark.parametrize(("wanted", "active", "reason"), [(3, 1, "FailedCreate"), (1, 3, "FailedDelete"), (1, 1, None)])
def test_a_failure_is_a_condition(wanted: int, active: int, reason: str | None) -> None:
    view = replica_set_view("web", replicas=wanted)
    conditions = status_document(plan_status(view, PodCounts(active=active), "quota", NOW))["conditions"]
    failed = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": NOW, "message": "quota"}
    assert conditions == [failed | ({"reason": reason} if reason else {})]


def test_a_failure_keeps_its_first_words_and_goes_with_the_next_success() -> None:
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "first"}
    view = replica_set_view("web", replicas=3, status={"conditions": [failed]})
    assert plan_status(view, PodCounts(active=1), "second", NOW).conditions[0].message == "first"
    assert plan_status(view, PodCounts(active=1), None, NOW).conditions == ()
