"""CustomStrategy: validation, generations and status of custom objects. Versions are read from definitions."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import Kind
from mooring.apiserver.call import Call
from mooring.apiserver.custom.scaling import ScalePaths
from mooring.apiserver.custom.schema import read_schema
from mooring.apiserver.custom.strategy import CustomStrategy, finalizer_warnings, read_version, validate_list_type
from mooring.client.errors import ForbiddenError, InvalidError
from mooring.serving.users import User
from tests.apiserver.custom.definitions import fields, ruled, version, widget

SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
LISTS_SCHEMA = read_schema(
    fields(
        s=SET,
        one={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": fields(t=SET),
        },
        two={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b", "a"]},
        m={"type": "object", "additionalProperties": SET},
    )
)


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        pytest.param({"s": ["a", "b"]}, [], id="all different"),
        pytest.param({"s": ["a", "a", "a"]}, ['s[1]: Duplicate value: "a"'], id="a third duplicate is not reported"),
        pytest.param({"one": [{"k": 1}, {"k": 1}]}, ['one[1]: Duplicate value: {"k":1}'], id="one key"),
        pytest.param({"one": [{}, {}]}, ["one[1]: Duplicate value: {}"], id="no key"),
        pytest.param(
            {"two": [{"a": 1, "b": 2, "c": 3}, {"b": 2, "a": 1}]}, ['two[1]: Duplicate value: {"a":1,"b":2}'], id="keys"
        ),
        pytest.param(
            {"one": [1]}, ["one[0]: Invalid value: 1: must be an object for an array of list-type map"], id="no object"
        ),
        pytest.param(
            {"one": [{"k": 1, "t": ["x", "x"]}]}, ['one[0].t[1]: Duplicate value: "x"'], id="inside of an item"
        ),
        pytest.param({"m": {"k": ["x", "x"]}}, ['m[k][1]: Duplicate value: "x"'], id="inside of a map"),
    ],
)
def test_validate_list_type_reports_duplicates(value: Any, messages: list[str]) -> None:
    assert [error.message for error in validate_list_type(value, LISTS_SCHEMA)] == messages


PREFER = "to avoid accidental conflicts with other finalizer writers"


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        pytest.param("example.com/x", [], id="qualified"),
        pytest.param("orphan", [], id="a standard one"),
        pytest.param(
            "foo", [f'metadata.finalizers: "foo": prefer a domain-qualified finalizer name {PREFER}'], id="plain"
        ),
        pytest.param(
            "foo.bar",
            [f'metadata.finalizers: "foo.bar": prefer a domain-qualified finalizer name including a path (/) {PREFER}'],
            id="a domain alone",
        ),
    ],
)
def test_finalizers_without_a_domain_and_path_have_a_warning(name: str, texts: list[str]) -> None:
    assert finalizer_warnings({"finalizers": [name]}, None) == texts
    assert finalizer_warnings({"finalizers": [name]}, {"finalizers": [name]}) == []


KIND = Kind("example.com/v1", "Widget", "widgets")
SCHEMA = fields(
    spec=ruled(
        fields(size={"type": "integer", "maximum": 5}, tags={"type": "array", "x-kubernetes-list-type": "set"}),
        "!has(self.size) || self.size > 1",
    ),
    status=fields(phase={"type": "string"}),
)
STRATEGY = CustomStrategy(KIND, read_version(version(SCHEMA, subresources={"status": {}})))
STATUS = STRATEGY.subresources["status"]


def call() -> Call:
    return Call("update", KIND, User("u"), 0.0, "now", namespace="default", name="a")


def stored(**rest: Any) -> Document:
    metadata = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": 3}
    return {**widget(**rest), "metadata": metadata}


def messages(obj: Document) -> list[str]:
    return [error.message for error in STRATEGY.validate(obj, call())]


def test_prepare_for_create_drops_the_status_and_sets_the_generation() -> None:
    obj = widget(spec={"size": 2}, status={"phase": "x"})
    STRATEGY.prepare_for_create(obj, call())
    assert "status" not in obj
    assert obj["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param({"size": 2}, [], id="fine"),
        pytest.param(
            {"size": 9},
            ["spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5"],
            id="a bound",
        ),
        pytest.param({"size": 1}, ["spec: Invalid value: failed rule: !has(self.size) || self.size > 1"], id="a rule"),
        pytest.param({"tags": [1, 1]}, ["spec.tags[1]: Duplicate value: 1"], id="a set"),
        pytest.param(
            {"size": "x"},
            [
                'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
                "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
                "correct the existing errors to complete validation",
            ],
            id="rules are evaluated only for valid values",
        ),
    ],
)
def test_validate_reports_violations_of_schema_rules_and_list_types(spec: Document, found: list[str]) -> None:
    assert messages(widget(spec=spec)) == found


def test_validate_rejects_another_kind() -> None:
    with pytest.raises(InvalidError) as caught:
        messages({**widget(), "kind": "Gadget"})
    assert caught.value.message == 'Gadget.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget'


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        pytest.param({"spec": {"size": 3}}, 4, id="the spec"),
        pytest.param({"status": {"phase": "y"}}, 3, id="the status, which is not changed"),
        pytest.param({"extra": 1}, 4, id="anything else"),
    ],
)
def test_prepare_for_update_increments_the_generation_unless_only_the_status_changes(
    change: Document, generation: int
) -> None:
    old = stored(spec={"size": 2}, status={"phase": "x"})
    obj = {**stored(spec={"size": 2}, status={"phase": "x"}), **change}
    STRATEGY.prepare_for_update(obj, old, call())
    assert (obj["metadata"]["generation"], obj["status"]) == (generation, {"phase": "x"})


def test_a_status_update_changes_only_the_status() -> None:
    old = stored(spec={"size": 2})
    obj = stored(spec={"size": 4}, status={"phase": "y"})
    obj["metadata"] |= {"labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}
    STATUS.prepare_for_update(obj, old, call())
    assert obj == {
        **old,
        "metadata": {**old["metadata"], "managedFields": [{"manager": "m"}]},
        "status": {"phase": "y"},
    }
    assert STATUS.ignored_fields == (("metadata",), ("spec",))


def test_errors_of_a_status_have_its_path() -> None:
    errors = STATUS.validate_update(stored(status={"phase": 1}), stored(), call())
    assert (
        errors[0].message == 'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"'
    )


def test_unchanged_invalid_values_are_accepted_on_update() -> None:
    old, obj = stored(spec={"size": 9}), stored(spec={"size": 9, "tags": ["x"]})
    assert STRATEGY.validate_update(obj, old, call()) == []
    assert len(STRATEGY.validate_update(stored(spec={"size": 8}), old, call())) == 1


def test_canonicalize_writes_numbers_like_go() -> None:
    obj = widget(spec={"size": 2.0})
    STRATEGY.canonicalize(obj)
    assert repr(obj["spec"]) == "{'size': 2}"


def test_create_is_forbidden_while_the_definition_is_terminating() -> None:
    ending = CustomStrategy(KIND, read_version(version(SCHEMA)), is_terminating=True)
    with pytest.raises(ForbiddenError) as caught:
        ending.prepare_for_create(widget(), call())
    assert caught.value.message == (
        'widgets.example.com "a" is forbidden: create not allowed while custom resource definition is terminating'
    )


def test_unqualified_finalizers_have_a_warning_and_no_error() -> None:
    obj = widget()
    obj["metadata"]["finalizers"] = ["foo"]
    assert messages(obj) == []
    assert len(STRATEGY.warnings_on_create(obj, call())) == 1


def test_read_version_reads_all_parts_of_a_version() -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
    raw = fields(spec=ruled(fields(n={"type": "integer"}), "self.n > 1"), status=fields())
    entry = version(raw, subresources={"status": {}, "scale": scale}, selectableFields=[{"jsonPath": ".spec.n"}])
    found = read_version(entry)
    assert (found.name, found.has_status, found.scale) == ("v1", True, ScalePaths(".spec.n", ".status.n"))
    assert found.selectable_paths == (".spec.n",)
    assert found.rules is not None
    assert found.status_values is not None


def test_read_version_reads_a_minimal_version() -> None:
    found = read_version(version())
    assert (found.has_status, found.scale, found.rules, found.status_values) == (False, None, None, None)
