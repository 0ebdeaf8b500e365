"""Tests of kinds.storage_class and kinds.volume_attributes_class."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import STORAGE_CLASS, VOLUME_ATTRIBUTES_CLASS
from mooring.apiserver.kinds.storage_class import validate_storage_class, validate_storage_class_update
from mooring.apiserver.kinds.volume_attributes_class import (
    validate_volume_attributes_class,
    validate_volume_attributes_class_update,
)
from tests.apiserver.core_documents import call, changed, created, document, messages, strategy

QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
HERE = "allowedTopologies[0].matchLabelExpressions"


def storage_class(**parts: Any) -> dict[str, Any]:
    return document(STORAGE_CLASS, **{"provisioner": "example.com/p", **parts})


def term(*expressions: tuple[str, list[str]]) -> dict[str, Any]:
    return {"matchLabelExpressions": [{"key": key, "values": values} for key, values in expressions]}


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        pytest.param({}, [], id="defaults"),
        pytest.param({"provisioner": ""}, ["provisioner: Required value"], id="no provisioner"),
        pytest.param({"provisioner": "Example.com/P"}, [], id="a provisioner in upper case"),
        pytest.param(
            {"provisioner": "A b"},
            [f'provisioner: Invalid value: "a b": {QUALIFIED}'],
            id="an invalid provisioner, reported in lower case",
        ),
        pytest.param({"reclaimPolicy": ""}, [], id="an empty reclaim policy"),
        pytest.param(
            {"reclaimPolicy": "Recycle"},
            ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'],
            id="Recycle",
        ),
        pytest.param(
            {"volumeBindingMode": ""},
            [
                'volumeBindingMode: Unsupported value: "": supported values: "Immediate", "WaitForFirstConsumer"',
            ],
            id="an empty binding mode",
        ),
        pytest.param(
            {"parameters": {"": "x"}}, ['parameters: Invalid value: "": field can not be empty.'], id="an empty key"
        ),
        pytest.param(
            {"parameters": {str(number): "x" for number in range(513)}},
            ["parameters: Too long: may not be more than 512 bytes"],
            id="too many parameters",
        ),
        pytest.param(
            {"parameters": {"a": "x" * 256 * 1024}},
            ["parameters: Too long: may not be more than 262144 bytes"],
            id="too large parameters",
        ),
        pytest.param(
            {"allowedTopologies": [term(("a", ["x", "x"]))]},
            [f'{HERE}[0].values[1]: Duplicate value: "x"'],
            id="a duplicate value",
        ),
        pytest.param({"allowedTopologies": [term(("a", []))]}, [f"{HERE}[0].values: Required value"], id="no value"),
        pytest.param(
            {"allowedTopologies": [term(("a", ["x"]), ("a", ["y"]))]},
            [f'{HERE}[1].key: Duplicate value: "a"'],
            id="a duplicate key",
        ),
        pytest.param(
            {"allowedTopologies": [term(("a", ["x", "y"])), term(("a", ["y", "x"]))]},
            ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
            id="a duplicate term",
        ),
        pytest.param({"allowedTopologies": [term()]}, [f'{HERE}: Duplicate value: ""'], id="an empty term"),
    ],
)
def test_storage_classes_are_validated(parts: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_storage_class(storage_class(**parts))) == errors


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        pytest.param(
            {"allowVolumeExpansion": True, "mountOptions": ["ro"]}, [], id="expansion and mount options may change"
        ),
        pytest.param(
            {"parameters": {"b": "2", "a": "1"}},
            ['parameters: Invalid value: {"a":"1","b":"2"}: field is immutable'],
            id="parameters",
        ),
        pytest.param(
            {"provisioner": "x/y", "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer"},
            [
                'provisioner: Invalid value: "x/y": field is immutable',
                'reclaimPolicy: Invalid value: "Retain": field is immutable',
                'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
            ],
            id="provisioner, reclaim policy and binding mode",
        ),
    ],
)
def test_immutable_fields_of_storage_classes(parts: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_storage_class_update(storage_class(**parts), storage_class())) == errors


OLD_LABEL = [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/os", "values": ["linux"]}]}]


def test_deprecated_labels_in_topologies_have_a_warning() -> None:
    made = document(STORAGE_CLASS, provisioner="a/b", allowedTopologies=OLD_LABEL)
    assert created(STORAGE_CLASS, made) == []
    expected = [
        'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
    assert strategy(STORAGE_CLASS).warnings_on_create(made, call(STORAGE_CLASS)) == expected
    assert strategy(STORAGE_CLASS).warnings_on_update(made, made, call(STORAGE_CLASS)) == expected


def test_an_update_is_validated_as_new_and_as_a_change() -> None:
    errors, _ = changed(STORAGE_CLASS, document(STORAGE_CLASS, provisioner="a/b"), provisioner="")
    assert errors == ["provisioner: Required value", 'provisioner: Invalid value: "": field is immutable']


def test_reclaim_policy_and_binding_mode_are_defaulted() -> None:
    made = document(STORAGE_CLASS, provisioner="a/b")
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")


GOOD = {"driverName": "csi.example.com", "parameters": {"iops": "1"}}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        pytest.param(GOOD, [], id="a driver and a parameter"),
        pytest.param({**GOOD, "driverName": ""}, ["driverName: Required value"], id="no driver"),
        pytest.param(
            {"driverName": "a"},
            ["parameters: Required value: must contain at least one key/value pair"],
            id="no parameters",
        ),
    ],
)
def test_volume_attributes_classes_are_validated(obj: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_volume_attributes_class(obj)) == errors


def test_volume_attributes_classes_are_immutable() -> None:
    assert validate_volume_attributes_class_update(GOOD, GOOD) == []
    assert messages(validate_volume_attributes_class_update({"driverName": "x", "parameters": {}}, GOOD)) == [
        "driverName: Forbidden: updates to driverName are forbidden.",
        "parameters: Forbidden: updates to parameters are forbidden.",
    ]


def test_a_forbidden_change_is_reported_before_validation_errors() -> None:
    made = document(VOLUME_ATTRIBUTES_CLASS, driverName="a", parameters={"b": "c"})
    assert created(VOLUME_ATTRIBUTES_CLASS, made) == []
    errors, _ = changed(VOLUME_ATTRIBUTES_CLASS, made, parameters={})
    assert errors == [
        "parameters: Forbidden: updates to parameters are forbidden.",
        "parameters: Required value: must contain at least one key/value pair",
    ]
