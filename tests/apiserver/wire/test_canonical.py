"""Canonical documents: zero values, order of fields, scalars, and empty lists before and after they are stored."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.schema.types import struct_named
from mooring.apiserver.wire.canonical import canonical, forget_empty_lists
from mooring.apiserver.wire.json_text import NumberText
from mooring.apiserver.wire.scalars import ScalarError, UnexpectedJsonType


def made(package: str, name: str, raw: Any) -> Any:
    return canonical(struct_named(package, name), raw, [])


@pytest.mark.parametrize(
    ("type_name", "raw", "expected"),
    [
        pytest.param(
            "core.ConfigMap",
            {"metadata": {"name": ""}, "data": {}, "immutable": False},
            {"metadata": {}, "immutable": False},
            id="empty values are left out, a pointer to one is not",
        ),
        pytest.param("core.ConfigMap", {}, {"metadata": {}}, id="a struct is always written"),
        pytest.param(
            "core.ConfigMap", {"metadata": None, "data": None}, {"metadata": {}}, id="null is an absent value"
        ),
        pytest.param(
            "core.ConfigMap",
            {"data": {"a": None}, "binaryData": {"b": None}},
            {"metadata": {}, "data": {"a": ""}, "binaryData": {"b": ""}},
            id="null in a map is the zero value",
        ),
        pytest.param("core.LimitRangeSpec", {}, {"limits": None}, id="a list that is always written is null"),
        pytest.param("core.LimitRangeSpec", {"limits": []}, {"limits": []}, id="an empty list is kept"),
        pytest.param(
            "rbac.ClusterRole", {"rules": []}, {"metadata": {}, "rules": []}, id="an empty list of rules is kept"
        ),
        pytest.param(
            "core.PodTemplateSpec",
            {"metadata": {"labels": {}}},
            {"metadata": {"labels": {}}, "spec": {"containers": None}},
            id="empty labels of a pod template are kept",
        ),
        pytest.param(
            "storage.CSINodeSpec", {"drivers": []}, {"drivers": []}, id="an empty list of merged items is kept"
        ),
        pytest.param("storage.CSINodeSpec", {}, {"drivers": None}, id="an absent list of merged items is null"),
        pytest.param(
            "core.PodCondition",
            {"type": "Ready"},
            {"type": "Ready", "status": "", "lastProbeTime": None, "lastTransitionTime": None},
            id="fields that are always written",
        ),
        pytest.param(
            "meta.ObjectMeta", {"creationTimestamp": "0001-01-01T00:00:00Z"}, {}, id="the zero time is left out"
        ),
        pytest.param(
            "core.ResourceFieldSelector",
            {"resource": "limits.cpu"},
            {"resource": "limits.cpu", "divisor": "0"},
            id="a quantity is a struct, and written",
        ),
        pytest.param(
            "core.ResourceRequirements",
            {"requests": {"cpu": "0.5", "memory": 1024}},
            {"requests": {"cpu": "500m", "memory": "1024"}},
            id="quantities are canonical",
        ),
        pytest.param("core.ServicePort", {"port": 80}, {"port": 80, "targetPort": 0}, id="an int-or-string is written"),
        pytest.param(
            "core.Volume",
            {"name": "a", "emptyDir": {}},
            {"name": "a", "emptyDir": {}},
            id="fields of inlined structs are the struct's own",
        ),
        pytest.param(
            "core.PodSpec",
            {"containers": [None], "volumes": [{"name": "a"}]},
            {"containers": [{"name": "", "resources": {}}], "volumes": [{"name": "a"}]},
            id="null in a list is the zero struct",
        ),
        pytest.param(
            "core.Container",
            {"name": "a", "command": [None, "b"]},
            {"name": "a", "command": ["", "b"], "resources": {}},
            id="null in a list of strings",
        ),
        pytest.param(
            "meta.ManagedFieldsEntry",
            {"fieldsV1": {"f:a": {}}, "time": "2020-01-01T00:00:00+01:00"},
            {"fieldsV1": {"f:a": {}}, "time": "2019-12-31T23:00:00Z"},
            id="fieldsV1 is unchanged",
        ),
        pytest.param(
            "apiextensions.JSONSchemaProps",
            {"items": {"foo": 1, "type": "string"}, "additionalProperties": {"type": "x"}, "maximum": 2.0},
            {"items": {"type": "string"}, "additionalProperties": {"type": "x"}, "maximum": 2},
            id="schemas in schemas",
        ),
    ],
)
def test_canonical_documents_equal_those_of_go(type_name: str, raw: Any, expected: Any) -> None:
    package, _, name = type_name.partition(".")
    assert made(package, name, raw) == expected
    assert made(package, name, made(package, name, expected)) == expected


@pytest.mark.parametrize("time", ["the first time", "the second time, with the same names"])
def test_unknown_fields_are_dropped_and_reported(time: str) -> None:
    dropped: list[str] = []
    raw = {"frob": 1, "metadata": {"nope": 2, "name": "a"}, "kind": "ConfigMap"}
    assert canonical(struct_named("core", "ConfigMap"), raw, dropped) == {
        "metadata": {"name": "a"},
        "kind": "ConfigMap",
    }
    assert sorted(dropped) == ["frob", "nope"]


def test_fields_are_in_the_order_of_their_struct() -> None:
    raw = {
        "volumes": [],
        "status": {},
        "spec": {"nodeName": "n", "containers": []},
        "metadata": {"labels": {}, "name": "a"},
    }
    document = made("core", "Pod", raw)
    assert list(document) == ["metadata", "spec", "status"]
    assert list(document["spec"]) == ["containers", "nodeName"]


def test_zero_values_are_not_shared_between_documents() -> None:
    first = made("core", "Pod", {})
    first["spec"]["containers"] = ["changed"]
    assert made("core", "Pod", {})["spec"]["containers"] is None


@pytest.mark.parametrize(
    "raw",
    [
        {"metadata": "x"},
        {"metadata": {"name": 5}},
        {"metadata": {"labels": {"a": 5}}},
        {"metadata": {"generation": 1.0}},
        {"metadata": {"ownerReferences": ["x"]}},
        {"data": []},
        {"immutable": 1},
        [],
    ],
    ids=repr,
)
def test_a_value_of_a_wrong_json_type_is_an_error(raw: Any) -> None:
    with pytest.raises(UnexpectedJsonType):
        made("core", "ConfigMap", raw)


def test_an_invalid_time_is_an_error() -> None:
    with pytest.raises(ScalarError):
        made("core", "ConfigMap", {"metadata": {"creationTimestamp": "yesterday"}})


@pytest.mark.parametrize("number", [10**400, -(10**400), NumberText("1e400")])
def test_a_number_beyond_a_float64_in_untyped_data_is_an_error(number: float) -> None:
    with pytest.raises(ScalarError, match=r"json: cannot unmarshal number .* into Go value of type float64"):
        made("apps", "ControllerRevision", {"data": {"a": [{"b": number}]}})


@pytest.mark.parametrize(
    ("type_name", "raw", "stored"),
    [
        pytest.param("rbac.ClusterRole", {"rules": []}, {"metadata": {}, "rules": None}, id="an empty list is null"),
        pytest.param(
            "rbac.ClusterRole",
            {"rules": [{"verbs": []}]},
            {"metadata": {}, "rules": [{"verbs": None}]},
            id="a nested empty list is null",
        ),
        pytest.param("core.ConfigMap", {"data": {"a": "b"}}, {"metadata": {}, "data": {"a": "b"}}, id="no list"),
        pytest.param(
            "storage.CSINodeSpec",
            {"drivers": [{"name": "a", "nodeID": "b", "topologyKeys": []}]},
            {"drivers": [{"name": "a", "nodeID": "b", "topologyKeys": None}]},
            id="lists that are merged",
        ),
    ],
)
def test_forget_empty_lists_replaces_empty_lists_by_null(type_name: str, raw: Any, stored: Any) -> None:
    package, _, name = type_name.partition(".")
    struct = struct_named(package, name)
    document = canonical(struct, raw, [])
    forget_empty_lists(struct, document)
    assert document == stored
