"""Tests of kinds.replica_set."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.kinds.replica_set import (
    validate_replica_set,
    validate_replica_set_status,
    validate_replica_set_update,
)
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, changed, created, defaulted, updated


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"spec__replicas": -1, "spec__minReadySeconds": -2},
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0",
            ],
            id="negative counts",
        ),
        pytest.param(
            {"spec__selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            id="an empty selector",
        ),
    ],
)
def test_replica_set_specs_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    obj = defaulted(body("ReplicaSet", **changes))
    assert messages(validate_replica_set(obj["spec"], None, "spec")) == errors


def test_the_selector_cannot_be_changed() -> None:
    old = created(body("ReplicaSet")).obj
    new = defaulted(body("ReplicaSet", spec__selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}))
    assert messages(validate_replica_set_update(new["spec"], old["spec"], "spec")) == [
        'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable'
    ]


def test_inconsistent_counts_in_a_replica_set_status_are_rejected() -> None:
    status = {"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 0, "availableReplicas": 1}
    assert messages(validate_replica_set_status(status, "status")) == [
        "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas",
    ]


def test_a_new_replica_set_has_zero_replicas_in_its_status() -> None:
    obj = created(body("ReplicaSet", status={"replicas": 3})).obj
    assert obj["status"] == {"replicas": 0}
    assert obj["spec"]["replicas"] == 1


def test_updates_of_the_spec_but_not_of_annotations_increment_the_generation() -> None:
    old = created(body("ReplicaSet")).obj
    assert updated(body("ReplicaSet", metadata__annotations={"a": "b"}), old).obj["metadata"]["generation"] == 1
    assert updated(body("ReplicaSet", spec__replicas=2), old).obj["metadata"]["generation"] == 2


def test_a_status_update_keeps_the_spec_and_changes_labels() -> None:
    old = created(body("ReplicaSet")).obj
    raw = {**changed(old, status={"replicas": 1}, spec__replicas=9, metadata__labels={"a": "b"}), "kind": "ReplicaSet"}
    obj = updated({**raw, "apiVersion": "apps/v1"}, old, "status").obj
    assert obj["spec"]["replicas"] == 1
    assert obj["metadata"]["labels"] == {"a": "b"}
