"""Tests of kinds.job.spec and kinds.job.strategy."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import JOB
from mooring.apiserver.kinds.job.strategy import JobStrategy
from mooring.apiserver.strategy import DefaultPropagation
from tests.apiserver.workload_builders import UID, body, changed, created, updated

TEMPLATE = "spec.template"
PREFIXED = "batch.kubernetes.io/controller-uid"


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"spec__template__spec__restartPolicy": "Always"},
            [f'{TEMPLATE}.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
            id="restart policy Always",
        ),
        pytest.param(
            {"spec__completionMode": "X"},
            ['spec.completionMode: Unsupported value: "X": supported values: "NonIndexed", "Indexed"'],
            id="an unknown completion mode",
        ),
        pytest.param(
            {"spec__completionMode": "Indexed", "spec__parallelism": 2},
            ["spec.completions: Required value: when completion mode is Indexed"],
            id="Indexed without completions",
        ),
        pytest.param(
            {"spec__backoffLimitPerIndex": 1, "spec__maxFailedIndexes": 1},
            [
                "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
                "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode",
            ],
            id="limits of indexes without Indexed",
        ),
        pytest.param(
            {"spec__completionMode": "Indexed", "spec__completions": 3, "spec__maxFailedIndexes": 1},
            ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"],
            id="maxFailedIndexes without backoffLimitPerIndex",
        ),
        pytest.param(
            {
                "spec__completionMode": "Indexed",
                "spec__completions": 200_000,
                "spec__parallelism": 20_000,
                "spec__backoffLimitPerIndex": 1,
            },
            [
                "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "spec.parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are "
                "above 100000 and used with backoff limit per index",
            ],
            id="too many indexes",
        ),
        pytest.param(
            {"spec__completionMode": "Indexed", "spec__completions": 1000, "metadata__name": "j" * 60},
            [
                f'metadata.name: Invalid value: "{"j" * 60}": '
                f"will not able to create pod with invalid DNS label: {'j' * 60}-999"
            ],
            id="a name too long for the index",
        ),
        pytest.param(
            {"spec__managedBy": "me"},
            ['spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")'],
            id="a manager without a domain",
        ),
        pytest.param({"spec__managedBy": "example.com/me"}, [], id="a manager with a domain"),
        pytest.param(
            {"spec__managedBy": "a.b/" + "c" * 70},
            ["spec.managedBy: Too long: may not be more than 63 bytes"],
            id="a manager with a long name",
        ),
        pytest.param(
            {"spec__manualSelector": True},
            [
                "spec.selector: Required value",
                f"{TEMPLATE}.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            ],
            id="manualSelector without a selector",
        ),
        pytest.param(
            {"spec__template__metadata": {"labels": {"job-name": "other"}}, "metadata__labels": {"a": "b"}},
            [
                f"{TEMPLATE}.metadata.labels[job-name]: Invalid value: "
                f'{{"batch.kubernetes.io/controller-uid":"{UID}","batch.kubernetes.io/job-name":"o",'
                f'"controller-uid":"{UID}","job-name":"other"}}: must be \'o\''
            ],
            id="a job-name label of another job",
        ),
        pytest.param(
            {"spec__successPolicy": {"rules": [{"succeededCount": 1}]}},
            ['spec.successPolicy: Invalid value: {"Rules":[{"SucceededCount":1}]}: requires indexed completion mode'],
            id="a success policy without Indexed",
        ),
    ],
)
def test_new_jobs_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert created(body("Job", **changes)).errors == errors


def _update(old_changes: dict[str, Any], changes: dict[str, Any]) -> list[str]:
    old = created(body("Job", **old_changes)).obj
    new = changed({**old, "apiVersion": "batch/v1", "kind": "Job"}, **changes)
    return list(dict.fromkeys(updated(new, old).errors))


SUSPENDED = {"spec__suspend": True}
INDEXED = {"spec__completionMode": "Indexed", "spec__completions": 3, "spec__parallelism": 3}


@pytest.mark.parametrize(
    ("old", "changes", "errors"),
    [
        pytest.param({}, {"spec__parallelism": 5}, [], id="parallelism"),
        pytest.param({}, {"spec__suspend": True}, [], id="suspend"),
        pytest.param(
            {}, {"spec__completions": 4}, ["spec.completions: Invalid value: 4: field is immutable"], id="completions"
        ),
        pytest.param(
            INDEXED,
            {"spec__completions": 4},
            ["spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"],
            id="completions of an indexed job without parallelism",
        ),
        pytest.param(
            INDEXED,
            {"spec__completions": 4, "spec__parallelism": 4},
            [],
            id="completions and parallelism of an indexed job",
        ),
        pytest.param(
            {},
            {"spec__managedBy": "a.b/c"},
            ['spec.managedBy: Invalid value: "a.b/c": field is immutable'],
            id="another manager",
        ),
        pytest.param(
            {},
            {"spec__selector": {"matchLabels": {"a": "b"}}},
            [
                'spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` not auto-generated',
                f"{TEMPLATE}.metadata.labels: Invalid value: "
                f'{{"{PREFIXED}":"{UID}","batch.kubernetes.io/job-name":"o","controller-uid":"{UID}","job-name":"o"}}: '
                "`selector` does not match template `labels`",
                'spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable',
            ],
            id="another selector",
        ),
        pytest.param(SUSPENDED, {"spec__template__spec__nodeSelector": {"a": "b"}}, [], id="suspended: node selector"),
        pytest.param(
            SUSPENDED,
            {"spec__template__spec__tolerations": [{"key": "a", "operator": "Exists"}]},
            [],
            id="suspended: tolerations",
        ),
    ],
)
def test_updates_of_jobs_are_validated(old: dict[str, Any], changes: dict[str, Any], errors: list[str]) -> None:
    assert _update(old, changes) == errors


@pytest.mark.parametrize(
    ("old", "path", "value"),
    [
        pytest.param(
            {}, "spec.template", {"spec__template__spec__nodeSelector": {"a": "b"}}, id="running: node selector"
        ),
        pytest.param(
            SUSPENDED,
            "spec.template.spec",
            {"spec__template__spec__schedulerName": "x"},
            id="suspended: scheduler name",
        ),
    ],
)
def test_the_template_of_a_job_is_immutable(old: dict[str, Any], path: str, value: dict[str, Any]) -> None:
    (error,) = _update(old, value)
    assert error.startswith(f'{path}: Invalid value: {{"')
    assert error.endswith("}: field is immutable")


def test_a_suspended_job_may_change_its_resources() -> None:
    old = created(body("Job", **SUSPENDED)).obj
    resized = changed({**old, "apiVersion": "batch/v1", "kind": "Job"})
    resized["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert updated(resized, old).errors == []


def test_an_error_of_the_spec_is_reported_twice_on_an_update() -> None:
    old = created(body("Job")).obj
    new = changed({**old, "apiVersion": "batch/v1", "kind": "Job"}, spec__parallelism=-1)
    shown = "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"
    assert updated(new, old).errors == [shown, shown]


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


def test_a_manual_selector_is_kept() -> None:
    selector = {"matchLabels": {"a": "b"}}
    raw = body("Job", spec__manualSelector=True, spec__selector=selector)
    obj = created(changed(raw, spec__template__metadata={"labels": {"a": "b"}})).obj
    assert obj["spec"]["selector"] == selector
    assert obj["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_deleting_a_job_without_a_propagation_policy_orphans_its_pods_with_a_warning() -> None:
    strategy = JobStrategy(JOB)
    assert strategy.dependents is DefaultPropagation.ORPHAN
    assert strategy.warnings_on_delete(is_propagation_said=True) == []
    assert strategy.warnings_on_delete(is_propagation_said=False) == [
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning"
    ]


def test_jobs_can_be_selected_by_successful_pods() -> None:
    strategy = JobStrategy(JOB)
    assert strategy.selectable_fields({"status": {"succeeded": 3}}) == {"status.successful": "3"}
    assert strategy.selectable_fields({}) == {"status.successful": "0"}


def test_a_status_update_is_validated() -> None:
    old = created(body("Job")).obj
    new = changed({**old, "apiVersion": "batch/v1", "kind": "Job"}, status={"active": 1, "ready": 2})
    assert updated(new, old, "status").errors == [
        "status.ready: Invalid value: 2: cannot set more ready pods than active"
    ]


@pytest.mark.parametrize(
    ("parallelism", "count"), [pytest.param(20_000, 1, id="high parallelism"), pytest.param(5, 0, id="low parallelism")]
)
def test_many_indexes_with_a_high_parallelism_have_a_warning(parallelism: int, count: int) -> None:
    raw = body("Job", spec__completionMode="Indexed", spec__completions=200_000, spec__parallelism=parallelism)
    assert len(created(raw).warnings) == count
