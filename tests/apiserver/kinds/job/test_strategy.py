"""Tests of kinds.job.strategy."""

from __future__ import annotations

import pytest

from mooring.api.kinds import JOB
from mooring.apiserver.kinds.job.strategy import JobStrategy
from mooring.apiserver.strategy import Dependents
from tests.apiserver.workload_builders import UID, body, changed, created, updated

GENERATED = {
    "batch.kubernetes.io/controller-uid": UID,
    "batch.kubernetes.io/job-name": "o",
    "controller-uid": UID,
    "job-name": "o",
}


def test_a_job_selects_by_its_uid_and_labels_its_pods() -> None:
    obj = created(body("Job")).obj
    assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    assert obj["spec"]["template"]["metadata"]["labels"] == GENERATED
    assert obj["status"] == {}


def test_a_job_without_labels_gets_those_of_its_pods_when_it_is_stored() -> None:
    assert created(body("Job")).obj["metadata"]["labels"] == GENERATED


def test_a_job_that_shares_the_labels_of_its_pods_gets_the_generated_ones_too() -> None:
    obj = created(body("Job", spec__template__metadata={"labels": {"a": "b"}})).obj
    assert obj["metadata"]["labels"] == {"a": "b", **GENERATED}


def test_a_job_with_labels_of_its_own_keeps_them() -> None:
    labels = {"z": "1"}
    obj = created(body("Job", metadata__labels=labels, spec__template__metadata={"labels": {"a": "b"}})).obj
    assert obj["metadata"]["labels"] == labels


def test_empty_labels_of_the_pods_are_shared_before_the_job_is_validated() -> None:
    name = "j" * 64
    empty = created(body("Job", metadata__name=name, spec__template__metadata={"labels": {}}))
    none = created(body("Job", metadata__name=name))
    assert any(error.startswith("metadata.labels: ") for error in empty.errors)
    assert not any(error.startswith("metadata.labels: ") for error in none.errors)


def test_a_selector_by_hand_is_left_alone() -> None:
    selector = {"matchLabels": {"a": "b"}}
    raw = body("Job", spec__manualSelector=True, spec__selector=selector)
    obj = created(changed(raw, spec__template__metadata={"labels": {"a": "b"}})).obj
    assert obj["spec"]["selector"] == selector
    assert obj["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_deleting_a_job_without_a_propagation_policy_orphans_its_pods_with_a_warning() -> None:
    strategy = JobStrategy(JOB)
    assert strategy.dependents is Dependents.ORPHAN
    assert strategy.warnings_on_delete(is_propagation_said=True) == []
    assert strategy.warnings_on_delete(is_propagation_said=False) == [
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning"
    ]


def test_jobs_are_selected_by_their_successes() -> None:
    strategy = JobStrategy(JOB)
    assert strategy.selectable_fields({"status": {"succeeded": 3}}) == {"status.successful": "3"}
    assert strategy.selectable_fields({}) == {"status.successful": "0"}


def test_a_status_update_is_guarded() -> None:
    old = created(body("Job")).obj
    wanted = changed({**old, "apiVersion": "batch/v1", "kind": "Job"}, status={"active": 1, "ready": 2})
    assert updated(wanted, old, "status").errors == [
        "status.ready: Invalid value: 2: cannot set more ready pods than active"
    ]


@pytest.mark.parametrize(
    ("parallelism", "count"), [pytest.param(20_000, 1, id="very many at once"), pytest.param(5, 0, id="a few at once")]
)
def test_very_many_indexes_are_warned_of(parallelism: int, count: int) -> None:
    raw = body("Job", spec__completionMode="Indexed", spec__completions=200_000, spec__parallelism=parallelism)
    assert len(created(raw).warnings) == count
