"""ReplicaSet, ReplicationController and ControllerRevision: validation, defaults, tables."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import REPLICATION_CONTROLLER
from mooring.apiserver.kinds import strategy_of
from mooring.apiserver.kinds.controller_revision import validate_controller_revision, validate_revision_data
from mooring.apiserver.kinds.pod.defaults import note_empty_labels
from mooring.apiserver.kinds.replica_set import (
    validate_replica_set,
    validate_replica_set_status,
    validate_replica_set_update,
)
from mooring.apiserver.kinds.replication_controller import (
    ReplicationControllerStrategy,
    validate_non_convertible,
    validate_replication_controller,
    validate_replication_controller_status,
)
from mooring.apiserver.strategy import DefaultPropagation
from tests.apiserver.core_documents import messages
from tests.apiserver.pod_builders import call_for, pod
from tests.apiserver.workload_builders import GONE, body, changed, created, defaulted, updated


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


def test_selector_and_labels_default_to_the_labels_of_the_template() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    made: Document = {"metadata": {}, "spec": {"template": template}}
    strategy_of(REPLICATION_CONTROLLER).default(made)
    assert (made["spec"]["replicas"], made["spec"]["selector"], made["metadata"]["labels"]) == (
        1,
        {"a": "b"},
        {"a": "b"},
    )
    given: Document = {
        "metadata": {"labels": {"c": "d"}},
        "spec": {"replicas": 0, "selector": {"e": "f"}, "template": template},
    }
    strategy_of(REPLICATION_CONTROLLER).default(given)
    assert (given["spec"]["replicas"], given["spec"]["selector"], given["metadata"]["labels"]) == (
        0,
        {"e": "f"},
        {"c": "d"},
    )


def template(**spec: object) -> Document:
    return {"metadata": {"labels": {"a": "b"}}, "spec": pod(spec)["spec"]}


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"selector": None}, ["spec.selector: Required value"], id="no selector"),
        pytest.param({"template": None}, ["spec.template: Required value"], id="no template"),
        pytest.param(
            {"replicas": -1, "minReadySeconds": -2},
            [
                "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0",
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            ],
            id="negative numbers",
        ),
        pytest.param(
            {"selector": {"a": "c"}},
            ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
            id="a selector that does not match the template",
        ),
        pytest.param(
            {"template": template(restartPolicy="Never", activeDeadlineSeconds=5)},
            [
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
                "spec.template.spec.activeDeadlineSeconds: Forbidden: "
                "activeDeadlineSeconds in ReplicationController is not Supported",
            ],
            id="restart policy Never and a deadline",
        ),
    ],
)
def test_replication_controller_specs_are_validated(changes: Document, errors: list[str]) -> None:
    spec = {"replicas": 1, "selector": {"a": "b"}, "template": template(), **changes}
    assert messages(validate_replication_controller(spec, None)) == errors


def test_errors_show_empty_template_labels_as_an_empty_map() -> None:
    empty = {"metadata": {"labels": {}}, "spec": template()["spec"]}
    note_empty_labels(empty)
    (error,) = validate_replication_controller({"replicas": 1, "selector": {"a": "b"}, "template": empty}, None)
    assert error.message.startswith("spec.template.metadata.labels: Invalid value: {}: ")


def test_zero_counts_exceed_negative_replicas() -> None:
    assert messages(validate_replication_controller_status({"replicas": -1}))[1:] == [
        "status.fullyLabeledReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
    ]


def test_inconsistent_counts_in_a_status_are_rejected() -> None:
    status = {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "fullyLabeledReplicas": -1}
    assert messages(validate_replication_controller_status(status)) == [
        "status.fullyLabeledReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
    ]


def test_a_non_convertible_selector_is_immutable() -> None:
    annotations = {"non-convertible.kubernetes.io/selector": "x", "non-convertible.kubernetes.io/zeal": "y"}
    old = {"metadata": {"annotations": annotations}, "spec": {"selector": {"a": "b"}}}
    new = {**old, "spec": {"selector": {"a": "c"}}}
    assert messages(validate_non_convertible(new, old)) == [
        'spec.selector: Invalid value: {"a":"c"}: cannot update non-convertible selector',
        'zeal: Not found: "y": unknown non-convertible field',
    ]


STRATEGY = ReplicationControllerStrategy(REPLICATION_CONTROLLER)
CALL = call_for(REPLICATION_CONTROLLER)


def made() -> Document:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": pod({"nodeSelector": {"beta.kubernetes.io/os": "x"}})["spec"],
    }
    obj: Document = {"metadata": {"name": "r", "namespace": "n"}, "spec": {"template": template}}
    STRATEGY.default(obj)
    STRATEGY.prepare_for_create(obj, CALL)
    return obj


def test_a_new_replication_controller_has_zero_replicas_and_orphans_pods_by_default() -> None:
    obj = made()
    assert (obj["status"], obj["metadata"]["generation"], STRATEGY.dependents) == (
        {"replicas": 0},
        1,
        DefaultPropagation.ORPHAN,
    )
    assert messages(STRATEGY.validate(obj, CALL)) == []
    assert STRATEGY.selectable_fields(obj) == {"status.replicas": "0"}


def test_warnings_of_an_update_are_about_the_old_template() -> None:
    old = made()
    new = deepcopy(old)
    del new["spec"]["template"]["spec"]["nodeSelector"]
    STRATEGY.prepare_for_update(new, old, CALL)
    assert new["metadata"]["generation"] == 2
    assert STRATEGY.warnings_on_update(new, old, CALL) == STRATEGY.warnings_on_create(old, CALL) != []


def test_a_status_update_with_inconsistent_counts_is_rejected() -> None:
    old = made()
    old["metadata"].update(resourceVersion="1", uid="u")
    new = deepcopy(old)
    new["status"] = {"replicas": 1, "readyReplicas": 2}
    status = STRATEGY.subresources["status"]
    assert messages(status.validate_update(new, old, CALL)) == [
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"
    ]


def test_the_error_of_a_long_name_counts_bytes_and_a_prefix_is_not_validated() -> None:
    strategy = ReplicationControllerStrategy(REPLICATION_CONTROLLER)
    assert strategy.name_errors("a" * 254, is_prefix=False) == ("must be no more than 253 bytes",)
    assert strategy.name_errors("A_", is_prefix=True) == ()


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"data": {}}, [], id="empty data"),
        pytest.param({"data": GONE}, ["data: Required value: data is mandatory"], id="no data"),
        pytest.param({"data": []}, ["data: Required value: data must be a valid JSON object"], id="a list"),
        pytest.param(
            {"revision": -1},
            ["revision: Invalid value: -1: must be greater than or equal to 0"],
            id="a negative revision",
        ),
    ],
)
def test_controller_revisions_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_controller_revision(body("ControllerRevision", **changes))) == errors


def test_the_data_of_a_controller_revision_is_immutable() -> None:
    old, new = body("ControllerRevision"), body("ControllerRevision", data={"a": 2})
    assert messages(validate_revision_data(new, old)) == ['data: Invalid value: {"a":2}: field is immutable']
    assert validate_revision_data(body("ControllerRevision", revision=2), old) == []


def test_only_the_number_of_a_controller_revision_can_be_updated() -> None:
    old = created(body("ControllerRevision")).obj
    assert updated(body("ControllerRevision", revision=2), old).errors == []
    assert updated(body("ControllerRevision", data={"b": 1}), old).errors == [
        'data: Invalid value: {"b":1}: field is immutable'
    ]
