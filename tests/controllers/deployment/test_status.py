"""The status of a Deployment: counts and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.meta import Condition, find_condition
from mooring.api.views.workloads import Deployment, DeploymentStatus
from mooring.controllers.deployment.status import (
    check_again_in_s,
    counted_status,
    paused_status,
    rollout_status,
    with_condition,
    without_condition,
)
from mooring.controllers.documents import view_document
from mooring.kit.clock import format_rfc3339
from tests.controllers.builders import NOW_S, deployment_view, replica_set_view

LONG_AGO_S = NOW_S - 10_000


def progressing(reason: str, status: str = "True", updated_s: float = NOW_S) -> dict[str, Any]:
    stamp = format_rfc3339(updated_s)
    times = {"lastUpdateTime": stamp, "lastTransitionTime": format_rfc3339(LONG_AGO_S)}
    return {"type": "Progressing", "status": status, "reason": reason, **times}


def with_status(*conditions: dict[str, Any], replicas: int = 2, **status: Any) -> Deployment:
    return deployment_view(replicas=replicas, status={"conditions": list(conditions), **status})


def shown(status: DeploymentStatus, type_: str) -> tuple[str, str] | None:
    condition = find_condition(status.conditions, type_)
    return (condition.status, condition.reason) if condition is not None else None


def test_counts_are_sums_over_the_sets() -> None:
    new = replica_set_view("new", replicas=3, actual=2, ready=2, available=1, status={"terminatingReplicas": 1})
    old = replica_set_view("old", replicas=2, actual=2, available=2, status={"terminatingReplicas": 2})
    status = counted_status(deployment_view(replicas=4), new, [old, new], NOW_S)
    assert view_document(status) == {
        "observedGeneration": 1,
        "replicas": 4,
        "updatedReplicas": 2,
        "readyReplicas": 4,
        "availableReplicas": 3,
        "unavailableReplicas": 2,
        "terminatingReplicas": 3,
        "conditions": [
            {
                "type": "Available",
                "status": "True",
                "lastUpdateTime": format_rfc3339(NOW_S),
                "lastTransitionTime": format_rfc3339(NOW_S),
                "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
            }
        ],
    }


@pytest.mark.parametrize(
    ("statuses", "count"),
    [
        pytest.param([{"terminatingReplicas": 1}, {"terminatingReplicas": 2}], 3, id="the sum"),
        pytest.param([{"terminatingReplicas": 1}, {}], None, id="one without the count: unknown"),
        pytest.param([{"terminatingReplicas": 1}, {"observedGeneration": 0}], 1, id="one was never looked at"),
        pytest.param([], 0, id="none"),
    ],
)
def test_terminating_pods_are_counted_if_all_tell(statuses: list[dict[str, Any]], count: int | None) -> None:
    sets = [replica_set_view(str(index), status=status) for index, status in enumerate(statuses)]
    assert counted_status(deployment_view(), None, sets, NOW_S).terminating_replicas == count


@pytest.mark.parametrize(
    ("available", "shown_as"),
    [
        (3, ("True", "MinimumReplicasAvailable")),
        (2, ("False", "MinimumReplicasUnavailable")),
    ],
)
def test_available_means_as_many_as_must_be(available: int, shown_as: tuple[str, str]) -> None:
    new = replica_set_view("new", replicas=4, available=available)
    assert shown(counted_status(deployment_view(replicas=4), new, [new], NOW_S), "Available") == shown_as


@pytest.mark.parametrize(
    ("deployment", "available", "shown_as"),
    [
        pytest.param(with_status(), 0, ("True", "ReplicaSetUpdated"), id="the first pods were made"),
        pytest.param(
            with_status(progressing("NewReplicaSetCreated"), replicas=2),
            2,
            ("True", "NewReplicaSetAvailable"),
            id="all are available",
        ),
        pytest.param(
            with_status(progressing("ReplicaSetUpdated", updated_s=NOW_S - 600), updatedReplicas=2),
            0,
            ("True", "ReplicaSetUpdated"),
            id="the deadline itself is not too late",
        ),
        pytest.param(
            with_status(progressing("ReplicaSetUpdated", updated_s=NOW_S - 601), updatedReplicas=2, replicas=2),
            0,
            ("False", "ProgressDeadlineExceeded"),
            id="nothing happened for too long",
        ),
        pytest.param(
            with_status(progressing("ProgressDeadlineExceeded", "False"), updatedReplicas=2),
            0,
            ("False", "ProgressDeadlineExceeded"),
            id="once too late, it stays so",
        ),
        pytest.param(
            with_status(progressing("ProgressDeadlineExceeded", "False"), updatedReplicas=2),
            1,
            ("True", "ReplicaSetUpdated"),
            id="until it gets on",
        ),
        pytest.param(
            with_status(progressing("NewReplicaSetAvailable", updated_s=LONG_AGO_S), updatedReplicas=2),
            1,
            ("True", "NewReplicaSetAvailable"),
            id="a rollout that is over does not time out",
        ),
    ],
)
def test_progress(deployment: Deployment, available: int, shown_as: tuple[str, str]) -> None:
    new = replica_set_view("new", replicas=2, available=available)
    assert shown(rollout_status(deployment, new, [new], NOW_S), "Progressing") == shown_as


def test_a_rollout_that_gets_on_is_stamped_anew_but_keeps_its_transition() -> None:
    deployment = with_status(progressing("ReplicaSetUpdated", updated_s=NOW_S - 100))
    new = replica_set_view("new", replicas=2, available=1)
    condition = find_condition(rollout_status(deployment, new, [new], NOW_S).conditions, "Progressing")
    assert condition is not None
    assert condition.last_update_time == format_rfc3339(NOW_S)
    assert condition.last_transition_time == format_rfc3339(LONG_AGO_S)
    assert condition.message == 'ReplicaSet "new" is progressing.'


def test_without_a_deadline_there_is_no_progress() -> None:
    deployment = deployment_view(deadline_s=None, status={"conditions": [progressing("ReplicaSetUpdated")]})
    assert shown(rollout_status(deployment, None, [], NOW_S), "Progressing") is None


def test_the_failure_of_a_set_is_passed_on_and_taken_back() -> None:
    failed = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "no",
        "lastUpdateTime": "",
    }
    new = replica_set_view("new", status={"conditions": [failed]})
    status = rollout_status(deployment_view(), new, [new], NOW_S)
    assert shown(status, "ReplicaFailure") == ("True", "FailedCreate")
    healthy = replica_set_view("new")
    again = deployment_view(status=view_document(status))
    assert shown(rollout_status(again, healthy, [healthy], NOW_S), "ReplicaFailure") is None


@pytest.mark.parametrize(
    ("is_paused", "before", "after"),
    [
        pytest.param(True, None, ("Unknown", "DeploymentPaused"), id="paused"),
        pytest.param(True, "ReplicaSetUpdated", ("Unknown", "DeploymentPaused"), id="paused under way"),
        pytest.param(False, "DeploymentPaused", ("Unknown", "DeploymentResumed"), id="resumed"),
        pytest.param(True, "ProgressDeadlineExceeded", ("True", "ProgressDeadlineExceeded"), id="too late for that"),
        pytest.param(False, "ReplicaSetUpdated", ("True", "ReplicaSetUpdated"), id="neither"),
    ],
)
def test_pausing_is_noted(is_paused: bool, before: str | None, after: tuple[str, str]) -> None:
    conditions = [progressing(before)] if before is not None else []
    deployment = deployment_view(paused=is_paused, status={"conditions": conditions})
    assert shown(paused_status(deployment, NOW_S), "Progressing") == after


@pytest.mark.parametrize(
    ("condition", "again_s"),
    [
        pytest.param(progressing("ReplicaSetUpdated", updated_s=NOW_S - 100), 501.0, id="a second past the deadline"),
        pytest.param(progressing("ReplicaSetUpdated", updated_s=NOW_S - 600), 0.005, id="soon"),
        pytest.param(progressing("ProgressDeadlineExceeded", "False"), None, id="it is too late already"),
        pytest.param(progressing("NewReplicaSetAvailable", updated_s=NOW_S - 600), None, id="it was over long ago"),
    ],
)
def test_a_rollout_that_stands_still_is_looked_at_again(condition: dict[str, Any], again_s: float | None) -> None:
    deployment = with_status(condition)
    assert check_again_in_s(deployment, deployment.status, NOW_S) == again_s


def test_a_condition_is_left_alone_if_it_says_nothing_new() -> None:
    first = Condition(type="A", status="True", reason="R", message="one", last_transition_time="t1")
    status = with_condition(DeploymentStatus(), first)
    same = Condition(type="A", status="True", reason="R", message="two", last_transition_time="t2")
    assert with_condition(status, same) is status
    other = Condition(type="A", status="True", reason="S", last_transition_time="t2")
    (changed,) = with_condition(status, other).conditions
    assert (changed.reason, changed.last_transition_time) == ("S", "t1")
    assert without_condition(status, "A").conditions == ()
