"""Tests of kinds.stateful_set."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.kinds.stateful_set import (
    validate_stateful_set,
    validate_stateful_set_status,
    validate_stateful_set_update,
)
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, changed, created, defaulted, updated

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
MOUNTING = [{"name": "c", "image": "i:1", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]
FORBIDDEN_CHANGE = (
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
    "are forbidden"
)


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"spec__podManagementPolicy": "X"},
            ["spec.podManagementPolicy: Invalid value: \"X\": must be 'OrderedReady' or 'Parallel'"],
            id="an unknown pod management policy",
        ),
        pytest.param(
            {"spec__updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
            [
                'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: '
                "only allowed for updateStrategy 'RollingUpdate'"
            ],
            id="OnDelete with rollingUpdate",
        ),
        pytest.param(
            {"spec__ordinals": {"start": -2}},
            ["spec.ordinals.start: Invalid value: -2: must be greater than or equal to 0"],
            id="a negative first ordinal",
        ),
        pytest.param(
            {"spec__serviceName": "a.b"},
            ['spec.serviceName: Invalid value: "a.b": must not contain dots'],
            id="an invalid service",
        ),
        pytest.param(
            {"spec__persistentVolumeClaimRetentionPolicy": {"whenDeleted": "X"}},
            [
                'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "X": '
                'supported values: "Retain", "Delete"'
            ],
            id="an unknown claim retention policy",
        ),
        pytest.param(
            {"spec__volumeClaimTemplates": [CLAIM], "spec__template__spec__containers": MOUNTING},
            [],
            id="a claim is a volume of the pods",
        ),
        pytest.param(
            {"spec__template__spec__containers": MOUNTING},
            ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'],
            id="an unknown volume",
        ),
        pytest.param(
            {"spec__template__spec__hostname": "NOT a name", "spec__template__spec__subdomain": "NOR this"},
            [],
            id="hostnames are not validated",
        ),
        pytest.param(
            {"spec__selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"],
            id="an empty selector",
        ),
    ],
)
def test_stateful_set_specs_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    obj = defaulted(body("StatefulSet", **changes))
    assert messages(validate_stateful_set(obj["spec"], "spec")) == errors


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({"spec__replicas": 3}, [], id="the number of replicas"),
        pytest.param({"spec__ordinals": {"start": 4}}, [], id="the first ordinal"),
        pytest.param({"spec__template__spec__nodeSelector": {"a": "b"}}, [], id="the template"),
        pytest.param({"spec__serviceName": "other"}, [FORBIDDEN_CHANGE], id="the service"),
        pytest.param({"spec__podManagementPolicy": "Parallel"}, [FORBIDDEN_CHANGE], id="the pod management policy"),
        pytest.param({"spec__volumeClaimTemplates": [CLAIM]}, [FORBIDDEN_CHANGE], id="the claims"),
    ],
)
def test_mutable_and_immutable_fields_of_stateful_sets(changes: dict[str, Any], errors: list[str]) -> None:
    old = created(body("StatefulSet", spec__serviceName="s")).obj
    new = defaulted(body("StatefulSet", **{"spec__serviceName": "s", **changes}))
    assert messages(validate_stateful_set_update(new["spec"], old["spec"], "spec")) == errors


def test_an_unchanged_invalid_template_is_accepted() -> None:
    old = defaulted(body("StatefulSet", spec__template__spec__containers=MOUNTING))
    new = defaulted(body("StatefulSet", spec__template__spec__containers=MOUNTING, spec__replicas=2))
    assert validate_stateful_set_update(new["spec"], old["spec"], "spec") == []


def test_inconsistent_counts_in_a_stateful_set_status_are_invalid() -> None:
    status = {"replicas": 1, "readyReplicas": 0, "currentReplicas": 2, "availableReplicas": 1}
    assert messages(validate_stateful_set_status(status, "status")) == [
        "status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas",
    ]


def test_a_new_stateful_set_has_zero_replicas_in_its_status() -> None:
    assert created(body("StatefulSet")).obj["status"] == {"replicas": 0, "availableReplicas": 0}


def test_the_name_of_a_stateful_set_must_be_a_dns_label() -> None:
    assert created(body("StatefulSet", metadata__name="a.b")).errors == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


def test_max_unavailable_is_dropped_unless_in_use() -> None:
    strategy = {"rollingUpdate": {"maxUnavailable": 2}}
    obj = created(body("StatefulSet", spec__updateStrategy=strategy)).obj
    assert obj["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 0}
    old = changed(obj, spec__updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}})
    kept = updated(body("StatefulSet", spec__updateStrategy=strategy), old).obj
    assert kept["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2, "partition": 0}


def test_fractional_storage_and_negative_history_limits_have_a_warning() -> None:
    claim = {
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}},
    }
    raw = body("StatefulSet", spec__revisionHistoryLimit=-1, spec__volumeClaimTemplates=[claim])
    assert created(raw).warnings == [
        "spec.volumeClaimTemplates[0].resources.requests[storage]: "
        'fractional byte value "1500m" is invalid, must be an integer',
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended",
    ]


def test_a_status_update_with_inconsistent_counts_is_rejected() -> None:
    old = created(body("StatefulSet")).obj
    raw = {**changed(old, status={"replicas": 0, "readyReplicas": 1}), "kind": "StatefulSet", "apiVersion": "apps/v1"}
    assert updated(raw, old, "status").errors == [
        "status.readyReplicas: Invalid value: 1: cannot be greater than status.replicas"
    ]
