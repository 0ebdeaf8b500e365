"""What is wrong with replica sets."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.replica_set import (
    replica_set_faults,
    replica_set_status_faults,
    replica_set_update_faults,
)
from tests.apiserver.field_errors import messages
from tests.apiserver.workload_builders import body, created, defaulted


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        pytest.param({}, [], id="a sound one"),
        pytest.param(
            {"spec__replicas": -1, "spec__minReadySeconds": -2},
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0",
            ],
            id="counts below zero",
        ),
        pytest.param(
            {"spec__selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            id="an empty selector, in the words of a deployment",
        ),
    ],
)
def test_specs(changes: dict[str, Any], faults: list[str]) -> None:
    obj = defaulted(body("ReplicaSet", **changes))
    assert messages(replica_set_faults(obj["spec"], None, "spec")) == faults


def test_the_selector_cannot_be_changed() -> None:
    old = created(body("ReplicaSet")).obj
    new = defaulted(body("ReplicaSet", spec__selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}))
    assert messages(replica_set_update_faults(new["spec"], old["spec"], "spec")) == [
        'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable'
    ]


def test_a_status_adds_up() -> None:
    status = {"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 0, "availableReplicas": 1}
    assert messages(replica_set_status_faults(status, "status")) == [
        "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas",
    ]
