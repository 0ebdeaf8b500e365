"""Tests of kinds.runtime_class."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.kinds.runtime_class import validate_runtime_class, validate_runtime_class_update
from tests.apiserver.core_documents import messages
from tests.apiserver.workload_builders import body, created, updated

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
