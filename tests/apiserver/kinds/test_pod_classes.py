"""PriorityClass and RuntimeClass: validation, immutable fields, tables."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.kinds.priority_class import validate_priority_class, validate_priority_class_update
from mooring.apiserver.kinds.runtime_class import validate_runtime_class, validate_runtime_class_update
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, created, defaulted, updated

RESERVED = (
    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
)


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({"value": 1_000_000_000}, [], id="the highest user-defined value"),
        pytest.param(
            {"value": 1_000_000_001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            id="too high",
        ),
        pytest.param(
            {"metadata__name": "system-x"},
            [f"{RESERVED}system-x is not a known system priority class"],
            id="an unknown system name",
        ),
        pytest.param(
            {"metadata__name": "system-node-critical", "value": 5},
            [f"{RESERVED}value of system-node-critical PriorityClass must be 2000001000"],
            id="a system class with another value",
        ),
        pytest.param(
            {"metadata__name": "system-cluster-critical", "value": 2_000_000_000, "globalDefault": True},
            [f"{RESERVED}globalDefault of system-cluster-critical PriorityClass must be false"],
            id="a system class as the global default",
        ),
        pytest.param({"preemptionPolicy": "Never"}, [], id="Never"),
        pytest.param({"preemptionPolicy": ""}, ["preemptionPolicy: Required value"], id="an empty policy"),
        pytest.param(
            {"preemptionPolicy": "X"},
            ['preemptionPolicy: Unsupported value: "X": supported values: "PreemptLowerPriority", "Never"'],
            id="an unknown policy",
        ),
    ],
)
def test_priority_classes_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_priority_class(body("PriorityClass", **changes))) == errors


def test_value_and_preemption_policy_are_immutable() -> None:
    old = body("PriorityClass", preemptionPolicy="Never")
    new = body("PriorityClass", value=6, preemptionPolicy="PreemptLowerPriority", description="d")
    assert messages(validate_priority_class_update(new, old)) == [
        "value: Forbidden: may not be changed in an update.",
        'preemptionPolicy: Invalid value: "PreemptLowerPriority": field is immutable',
    ]


def test_an_update_does_not_increment_the_generation() -> None:
    old = created(body("PriorityClass")).obj
    obj = updated(body("PriorityClass", description="d"), old).obj
    assert (old["metadata"]["generation"], obj["metadata"]["generation"]) == (1, 1)


def test_finalizers_need_a_domain() -> None:
    assert created(body("PriorityClass", metadata__finalizers=["x", "a.b/c"])).errors == [
        'metadata.finalizers[0]: Invalid value: "x": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]


def test_the_preemption_policy_defaults_to_preempt_lower_priority() -> None:
    assert defaulted(body("PriorityClass"))["preemptionPolicy"] == "PreemptLowerPriority"


TWICE = [{"key": "a", "operator": "Exists"}] * 2


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        pytest.param({"overhead": {"podFixed": {"cpu": "250m"}}}, [], id="valid"),
        pytest.param({"handler": ""}, ["handler: Required value"], id="no handler"),
        pytest.param({"handler": "a.b"}, ['handler: Invalid value: "a.b": must not contain dots'], id="a bad handler"),
        pytest.param(
            {"overhead": {"podFixed": {"cpu": "-1"}}},
            ['overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
            id="a negative overhead",
        ),
    ],
)
def test_runtime_classes_are_validated(changes: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_runtime_class(body("RuntimeClass", **changes))) == errors


def test_duplicate_tolerations_are_rejected() -> None:
    (error,) = messages(validate_runtime_class(body("RuntimeClass", scheduling={"tolerations": TWICE})))
    assert error.startswith('scheduling.tolerations[1]: Duplicate value: {"Key":"a"')


def test_the_handler_is_immutable() -> None:
    new, old = body("RuntimeClass", handler="kata"), body("RuntimeClass")
    assert messages(validate_runtime_class_update(new, old)) == ['handler: Invalid value: "kata": field is immutable']
    assert validate_runtime_class_update(old, old) == []


def test_deprecated_node_labels_have_a_warning() -> None:
    raw = body("RuntimeClass", scheduling={"nodeSelector": {"beta.kubernetes.io/os": "linux"}})
    assert created(raw).warnings == ['scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead']


def test_an_update_is_validated_as_new_and_as_a_change() -> None:
    old = created(body("RuntimeClass")).obj
    assert updated(body("RuntimeClass", handler=""), old).errors == [
        "handler: Required value",
        'handler: Invalid value: "": field is immutable',
    ]
