"""Tests of kinds.deployment."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.deployment import validate_deployment, validate_deployment_status
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import GONE, body, changed, created, defaulted, updated

MISMATCH = "`selector` does not match template `labels`"
ROLLING = "spec.strategy.rollingUpdate"


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"spec__replicas": -1},
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            id="negative replicas",
        ),
        pytest.param(
            {"spec__selector": GONE},
            [
                "spec.selector: Required value",
                f'spec.template.metadata.labels: Invalid value: {{"app":"x"}}: {MISMATCH}',
            ],
            id="no selector",
        ),
        pytest.param(
            {"spec__selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            id="an empty selector",
        ),
        pytest.param(
            {"spec__selector": {"matchExpressions": [{"key": "a", "operator": "Q"}]}},
            [
                'spec.selector.matchExpressions[0].operator: Invalid value: "Q": not a valid selector operator',
                'spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Q"}]}: '
                "invalid label selector",
            ],
            id="an invalid selector hides errors of the template",
        ),
        pytest.param(
            {"spec__template__spec__restartPolicy": "Never"},
            ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
            id="restart policy Never",
        ),
        pytest.param(
            {"spec__template__spec__activeDeadlineSeconds": 5},
            [
                "spec.template.spec.activeDeadlineSeconds: Forbidden: "
                "activeDeadlineSeconds in ReplicaSet is not Supported"
            ],
            id="pods with a deadline",
        ),
        pytest.param({"spec__strategy": {"type": "Recreate"}}, [], id="Recreate"),
        pytest.param(
            {"spec__strategy": {"type": "Recreate", "rollingUpdate": {}}},
            [f"{ROLLING}: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
            id="Recreate with rollingUpdate",
        ),
        pytest.param(
            {"spec__strategy": {"type": "X"}},
            [
                'spec.strategy: Unsupported value: {"Type":"X","RollingUpdate":null}: '
                'supported values: "Recreate", "RollingUpdate"'
            ],
            id="an unknown strategy",
        ),
        pytest.param(
            {"spec__strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            [f'{ROLLING}.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
            id="neither maxSurge nor maxUnavailable",
        ),
        pytest.param(
            {"spec__progressDeadlineSeconds": 10, "spec__minReadySeconds": 10},
            ["spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"],
            id="a deadline that is not above minReadySeconds",
        ),
        pytest.param(
            {"spec__progressDeadlineSeconds": -1},
            [
                "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds",
            ],
            id="a negative deadline",
        ),
    ],
)
def test_deployment_specs_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    obj = defaulted(body("Deployment", **changes))
    assert messages(validate_deployment(obj["spec"], None, "spec")) == errors


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        pytest.param({"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}, [], id="valid"),
        pytest.param(
            {"replicas": -1},
            [
                "status.replicas: Invalid value: -1: must be greater than or equal to 0",
                "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
                "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
            ],
            id="negative replicas",
        ),
        pytest.param(
            {"replicas": 3, "readyReplicas": 1, "availableReplicas": 2},
            ["status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"],
            id="available but not ready",
        ),
    ],
)
def test_deployment_statuses_are_validated(status: Document, errors: list[str]) -> None:
    assert messages(validate_deployment_status(status, {}, "status")) == errors


def test_a_new_deployment_is_defaulted_and_has_no_status() -> None:
    obj = created(body("Deployment", status={"replicas": 7}, metadata__generation=9)).obj
    assert obj["status"] == {}
    assert obj["metadata"]["generation"] == 1
    assert obj["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert obj["spec"]["replicas"] == 1
    assert obj["spec"]["revisionHistoryLimit"] == 10
    assert obj["spec"]["progressDeadlineSeconds"] == 600


@pytest.mark.parametrize(
    ("changes", "generation"),
    [
        pytest.param({"spec__replicas": 3}, 2, id="a change of the spec counts"),
        pytest.param({"metadata__annotations": {"a": "b"}}, 2, id="annotations count"),
        pytest.param({"metadata__labels": {"a": "b"}}, 1, id="labels do not count"),
        pytest.param({"status": {"replicas": 4}}, 1, id="the status is kept as it was"),
    ],
)
def test_updates_of_spec_and_annotations_increment_the_generation(changes: dict[str, Any], generation: int) -> None:
    old = created(body("Deployment")).obj
    outcome = updated(body("Deployment", **changes), old)
    assert outcome.errors == []
    assert outcome.obj["metadata"]["generation"] == generation
    assert outcome.obj["status"] == {}


def test_the_selector_cannot_be_changed() -> None:
    old = created(body("Deployment")).obj
    wider = body(
        "Deployment",
        spec__selector={"matchLabels": {"b": "c", "app": "x"}},
        spec__template__metadata__labels={"app": "x", "b": "c"},
    )
    assert updated(wider, old).errors == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"x","b":"c"}}: field is immutable'
    ]


def test_a_status_update_changes_neither_spec_nor_labels() -> None:
    old = created(body("Deployment")).obj
    new = changed(old, status={"replicas": 1}, spec__replicas=5, metadata__labels={"a": "b"}, kind="Deployment")
    outcome = updated({**new, "apiVersion": "apps/v1"}, old, "status")
    assert outcome.errors == []
    assert outcome.obj["spec"] == old["spec"]
    assert outcome.obj["status"] == {"replicas": 1}
    assert "labels" not in outcome.obj["metadata"]


def test_a_name_that_is_no_dns_label_has_a_warning() -> None:
    assert created(body("Deployment", metadata__name="a.b")).warnings == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    ]
