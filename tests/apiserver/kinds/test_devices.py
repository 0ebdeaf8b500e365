"""Tests of kinds.devices and kinds.device_class."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import DEVICE_CLASS
from mooring.apiserver.kinds.device_class import validate_device_class
from mooring.apiserver.kinds.devices import (
    validate_binding_conditions,
    validate_configuration,
    validate_full_device_name,
    validate_map,
    validate_pool_name,
    validate_qualified_device_name,
    validate_selectors,
    validate_set,
    validate_share_id,
)
from mooring.apiserver.validation.fields import required
from tests.apiserver.core_documents import changed, created, document, messages

UUID = "12345678-1234-1234-1234-123456789abc"
IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        pytest.param("model", [], id="a plain name"),
        pytest.param("gpu.example.com/Model_1", [], id="with a domain"),
        pytest.param("a/b/c", [], id="two slashes are not validated"),
        pytest.param("a b", [f'x: Invalid value: "a b": {IDENTIFIER}'], id="no identifier"),
        pytest.param("m" * 33, ["x: Too long: may not be more than 32 bytes"], id="a long one"),
        pytest.param("/model", ['x: Invalid value: "": the domain must not be empty'], id="no domain before the slash"),
        pytest.param("a/", ['x: Invalid value: "": the name must not be empty'], id="no name after it"),
    ],
)
def test_qualified_device_names_are_validated(name: str, errors: list[str]) -> None:
    assert messages(validate_qualified_device_name(name, "x")) == errors


def test_full_device_names_need_a_domain() -> None:
    assert validate_full_device_name("a/b", "x") == []
    assert messages(validate_full_device_name("b", "x")) == [
        'x: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash'
    ]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param("", 1, id="none"),
        pytest.param("node-1", 0, id="a node name"),
        pytest.param("zone/rack/node-1", 0, id="with slashes"),
        pytest.param("a//B", 2, id="each part is validated"),
        pytest.param("a" * 254, 2, id="too long as a whole, and as a part"),
    ],
)
def test_pool_names_are_validated(name: str, count: int) -> None:
    assert len(validate_pool_name(name, "x")) == count


@pytest.mark.parametrize(
    ("uid", "detail"),
    [
        pytest.param(UUID, "", id="in normal form"),
        pytest.param("x", "error validating uid: invalid UUID length: 1", id="short"),
        pytest.param("z" + UUID[1:], "error validating uid: invalid UUID format", id="no digits"),
        pytest.param("{" + UUID + ")", "error validating uid: invalid bracketed UUID format", id="half in brackets"),
        pytest.param("xrn:uuid:" + UUID, 'error validating uid: invalid urn prefix: "xrn:uuid:"', id="no urn"),
        pytest.param(UUID.upper(), "uid must be in RFC 4122 normalized form", id="in capitals"),
        pytest.param("{" + UUID + "}", "uid must be in RFC 4122 normalized form", id="in brackets"),
        pytest.param("urn:uuid:" + UUID, "uid must be in RFC 4122 normalized form", id="an urn"),
        pytest.param(UUID.replace("-", ""), "uid must be in RFC 4122 normalized form", id="without dashes"),
    ],
)
def test_share_ids_are_validated(uid: str, detail: str) -> None:
    errors = validate_share_id(uid, "x")
    assert [error.detail.startswith(detail) for error in errors] == ([True] if detail else [])


def test_validate_set_rejects_too_many_items_before_duplicates() -> None:
    assert messages(validate_set(["a", "a", "b"], 2, lambda item, path: [], "x")) == [
        "x: Too many: 3: must have at most 2 items"
    ]
    assert messages(validate_set(["a", "a"], 2, lambda item, path: [], "x")) == ['x[1]: Duplicate value: "a"']


def test_a_long_key_is_shortened_in_error_paths() -> None:
    found = validate_map({"a" * 60 + "b" * 60: 1}, lambda key, path: [], lambda value, path: [required(path)], "x")
    assert [error.field for error in found] == [f"x[{'a' * 47}...{'b' * 46}]"]


HERE = "s[0].cel.expression"


@pytest.mark.parametrize(
    ("expression", "errors"),
    [
        pytest.param("device.driver == 'gpu.example.com'", [], id="a good one"),
        pytest.param("device.attributes['a'].b", [], id="an attribute may be a bool"),
        pytest.param(
            "device.driver",
            [f'{HERE}: Invalid value: "device.driver": must evaluate to bool or the unknown type, not string'],
            id="no boolean",
        ),
        pytest.param("x" * 10241, [f"{HERE}: Too long: may not be more than 10240 bytes"], id="a long one"),
        pytest.param(
            "device.attributes.a.b.matches('x')",
            [f"{HERE}: Forbidden: too complex, exceeds cost limit"],
            id="a value of unknown size",
        ),
        pytest.param("device.attributes['a'].b.matches('x')", [], id="a value of known size"),
    ],
)
def test_cel_selectors_are_validated(expression: str, errors: list[str]) -> None:
    assert messages(validate_selectors([{"cel": {"expression": expression}}], "s")) == errors


def test_errors_of_the_cel_compiler_are_quoted() -> None:
    (error,) = validate_selectors([{"cel": {"expression": "nope("}}], "s")
    assert error.detail.startswith("compilation failed: ERROR: <input>:1:6: Syntax error: unexpected end of expression")
    (error,) = validate_selectors([{"cel": {"expression": ""}}], "s")
    assert error.detail.startswith("compilation failed: ERROR: <input>:1:0: Syntax error: unexpected end of expression")
    (error,) = validate_selectors([{"cel": {"expression": "'a'.matches('(')"}}], "s")
    assert "invalid matches argument" in error.detail


def test_empty_and_too_many_selectors_are_rejected() -> None:
    assert messages(validate_selectors([{}], "s")) == ["s[0].cel: Required value"]
    assert messages(validate_selectors([{}] * 33, "s")) == ["s: Too many: 33: must have at most 32 items"]


@pytest.mark.parametrize(
    ("config", "errors"),
    [
        pytest.param({}, ["c.opaque: Required value"], id="nothing"),
        pytest.param({"opaque": {"driver": "d", "parameters": {"a": 1}}}, [], id="an object"),
        pytest.param(
            {"opaque": {"driver": "", "parameters": None}},
            ["c.opaque.driver: Required value", "c.opaque.parameters: Required value"],
            id="neither driver nor parameters",
        ),
        pytest.param(
            {"opaque": {"driver": "d", "parameters": [1]}},
            ['c.opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object'],
            id="a list",
        ),
        pytest.param(
            {"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}},
            ["c.opaque.parameters: Too long: may not be more than 10240 bytes"],
            id="too large",
        ),
    ],
)
def test_opaque_parameters_are_validated(config: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_configuration(config, "c")) == errors


def test_stored_parameters_may_exceed_the_limit() -> None:
    assert validate_configuration({"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}, "c", True) == []


@pytest.mark.parametrize(
    ("awaited", "failures", "errors"),
    [
        pytest.param([], [], [], id="none"),
        pytest.param(["a"], ["b"], [], id="both"),
        pytest.param(
            ["a"],
            [],
            [
                "d.bindingFailureConditions: Invalid value: null: "
                "bindingFailureConditions are required to use bindingConditions"
            ],
            id="no failure conditions",
        ),
        pytest.param(
            [],
            ["a"],
            [
                "d.bindingConditions: Invalid value: null: "
                "bindingConditions are required to use bindingFailureConditions"
            ],
            id="only failure conditions",
        ),
        pytest.param(
            ["a", "a"],
            ["a", "b", "b"],
            [
                'd.bindingConditions[1]: Duplicate value: "a"',
                'd.bindingFailureConditions[0]: Invalid value: "a": '
                "bindingFailureConditions must not overlap with bindingConditions",
                'd.bindingFailureConditions[2]: Duplicate value: "b"',
            ],
            id="duplicates and overlaps",
        ),
        pytest.param(
            list("abcde"), ["z"], ["d.bindingConditions: Too many: 5: must have at most 4 items"], id="too many"
        ),
    ],
)
def test_binding_conditions_are_validated(awaited: list[str], failures: list[str], errors: list[str]) -> None:
    holder = {"bindingConditions": awaited, "bindingFailureConditions": failures}
    assert messages(validate_binding_conditions(holder, "d")) == errors


LARGE = {"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param({}, [], id="every device"),
        pytest.param({"extendedResourceName": "example.com/gpu"}, [], id="an extended resource"),
        pytest.param(
            {"extendedResourceName": "gpu"},
            ['spec.extendedResourceName: Invalid value: "gpu": must be a valid extended resource name'],
            id="a native resource",
        ),
        pytest.param({"selectors": [{}]}, ["spec.selectors[0].cel: Required value"], id="no selector"),
        pytest.param({"config": [{}] * 33}, ["spec.config: Too many: 33: must have at most 32 items"], id="too many"),
        pytest.param(
            {"config": [LARGE]},
            ["spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes"],
            id="too large",
        ),
    ],
)
def test_device_classes_are_validated(spec: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_device_class(spec, None, "spec")) == errors


def test_unchanged_large_parameters_are_accepted_on_update() -> None:
    assert validate_device_class({"config": [LARGE]}, {"config": [LARGE]}, "spec") == []
    assert len(validate_device_class({"config": [LARGE, LARGE]}, {"config": [LARGE]}, "spec")) == 2


def test_the_name_is_validated_but_not_the_generate_name() -> None:
    made = document(DEVICE_CLASS, {"name": "A_x", "generateName": "A_"})
    (error,) = created(DEVICE_CLASS, made)
    assert error.startswith('metadata.name: Invalid value: "A_x"')


def test_the_error_of_a_long_name_counts_bytes() -> None:
    (error,) = created(DEVICE_CLASS, document(DEVICE_CLASS, {"name": "a" * 254}))
    assert error.endswith(": must be no more than 253 bytes")


def test_an_update_of_the_spec_increments_the_generation() -> None:
    old = document(DEVICE_CLASS, {"generation": 1})
    spec = {"extendedResourceName": "a.b/c"}
    errors, new = changed(DEVICE_CLASS, old, spec=spec)
    assert (errors, new["metadata"]["generation"]) == ([], 2)
    assert changed(DEVICE_CLASS, new, spec=spec)[1]["metadata"]["generation"] == 2
    assert changed(DEVICE_CLASS, old, spec={"selectors": [{}]})[0] == ["spec.selectors[0].cel: Required value"]
