"""What is wrong with replication controllers."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.defaults.empty_labels import note_empty_labels
from mooring.apiserver.validation.replication_controller import (
    non_convertible_faults,
    replication_controller_faults,
    replication_controller_status_faults,
)
from tests.apiserver.field_errors import messages
from tests.apiserver.pod_builders import pod


def template(**spec: object) -> Document:
    return {"metadata": {"labels": {"a": "b"}}, "spec": pod(spec)["spec"]}


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        pytest.param({}, [], id="a sound one"),
        pytest.param({"selector": None}, ["spec.selector: Required value"], id="no selector"),
        pytest.param({"template": None}, ["spec.template: Required value"], id="no template"),
        pytest.param(
            {"replicas": -1, "minReadySeconds": -2},
            [
                "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0",
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            ],
            id="figures below zero",
        ),
        pytest.param(
            {"selector": {"a": "c"}},
            ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
            id="pods of others",
        ),
        pytest.param(
            {"template": template(restartPolicy="Never", activeDeadlineSeconds=5)},
            [
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
                "spec.template.spec.activeDeadlineSeconds: Forbidden: "
                "activeDeadlineSeconds in ReplicationController is not Supported",
            ],
            id="pods that end",
        ),
    ],
)
def test_specs(changes: Document, faults: list[str]) -> None:
    spec = {"replicas": 1, "selector": {"a": "b"}, "template": template(), **changes}
    assert messages(replication_controller_faults(spec, None)) == faults


def test_labels_that_are_empty_are_shown_so() -> None:
    empty = {"metadata": {"labels": {}}, "spec": template()["spec"]}
    note_empty_labels(empty)
    (fault,) = replication_controller_faults({"replicas": 1, "selector": {"a": "b"}, "template": empty}, None)
    assert fault.message.startswith("spec.template.metadata.labels: Invalid value: {}: ")


def test_nothing_is_more_than_less_than_nothing() -> None:
    assert messages(replication_controller_status_faults({"replicas": -1}))[1:] == [
        "status.fullyLabeledReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
    ]


def test_parts_are_not_more_than_the_whole() -> None:
    status = {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "fullyLabeledReplicas": -1}
    assert messages(replication_controller_status_faults(status)) == [
        "status.fullyLabeledReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
    ]


def test_a_selector_that_was_another_kinds_stays() -> None:
    annotations = {"non-convertible.kubernetes.io/selector": "x", "non-convertible.kubernetes.io/zeal": "y"}
    old = {"metadata": {"annotations": annotations}, "spec": {"selector": {"a": "b"}}}
    new = {**old, "spec": {"selector": {"a": "c"}}}
    assert messages(non_convertible_faults(new, old)) == [
        'spec.selector: Invalid value: {"a":"c"}: cannot update non-convertible selector',
        'zeal: Not found: "y": unknown non-convertible field',
    ]
