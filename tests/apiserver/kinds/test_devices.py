"""Tests of kinds.devices."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.kinds.devices import (
    binding_conditions_faults,
    configuration_faults,
    full_device_name_faults,
    map_faults,
    pool_name_faults,
    qualified_device_name_faults,
    selectors_faults,
    set_faults,
    share_id_faults,
)
from mooring.apiserver.validation.fields import required
from tests.apiserver.field_errors import messages

UUID = "12345678-1234-1234-1234-123456789abc"
IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        pytest.param("model", [], id="a plain name"),
        pytest.param("gpu.example.com/Model_1", [], id="with a domain"),
        pytest.param("a/b/c", [], id="with two slashes anything goes"),
        pytest.param("a b", [f'x: Invalid value: "a b": {IDENTIFIER}'], id="no identifier"),
        pytest.param("m" * 33, ["x: Too long: may not be more than 32 bytes"], id="a long one"),
        pytest.param("/model", ['x: Invalid value: "": the domain must not be empty'], id="no domain before the slash"),
        pytest.param("a/", ['x: Invalid value: "": the name must not be empty'], id="no name after it"),
    ],
)
def test_attributes_have_qualified_names(name: str, faults: list[str]) -> None:
    assert messages(qualified_device_name_faults(name, "x")) == faults


def test_some_names_need_a_domain() -> None:
    assert full_device_name_faults("a/b", "x") == []
    assert messages(full_device_name_faults("b", "x")) == [
        'x: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash'
    ]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param("", 1, id="none"),
        pytest.param("node-1", 0, id="a node's"),
        pytest.param("zone/rack/node-1", 0, id="with slashes"),
        pytest.param("a//B", 2, id="each part is judged"),
        pytest.param("a" * 254, 2, id="too long as a whole, and as a part"),
    ],
)
def test_pools_have_names_with_slashes(name: str, count: int) -> None:
    assert len(pool_name_faults(name, "x")) == count


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
def test_shares_are_told_apart_by_uuids(uid: str, detail: str) -> None:
    faults = share_id_faults(uid, "x")
    assert [fault.detail.startswith(detail) for fault in faults] == ([True] if detail else [])


def test_a_list_that_is_too_long_is_not_read() -> None:
    assert messages(set_faults(["a", "a", "b"], 2, lambda item, path: [], "x")) == [
        "x: Too many: 3: must have at most 2 items"
    ]
    assert messages(set_faults(["a", "a"], 2, lambda item, path: [], "x")) == ['x[1]: Duplicate value: "a"']


def test_a_long_key_is_cut_in_the_middle() -> None:
    found = map_faults({"a" * 60 + "b" * 60: 1}, lambda key, path: [], lambda value, path: [required(path)], "x")
    assert [fault.field for fault in found] == [f"x[{'a' * 47}...{'b' * 46}]"]


HERE = "s[0].cel.expression"


@pytest.mark.parametrize(
    ("expression", "faults"),
    [
        pytest.param("device.driver == 'gpu.example.com'", [], id="a good one"),
        pytest.param("device.attributes['a'].b", [], id="an attribute may be a bool"),
        pytest.param(
            "device.driver",
            [f'{HERE}: Invalid value: "device.driver": must evaluate to bool or the unknown type, not string'],
            id="no answer",
        ),
        pytest.param("x" * 10241, [f"{HERE}: Too long: may not be more than 10240 bytes"], id="a long one"),
        pytest.param(
            "device.attributes.a.b.matches('x')",
            [f"{HERE}: Forbidden: too complex, exceeds cost limit"],
            id="nobody knows how long that is",
        ),
        pytest.param("device.attributes['a'].b.matches('x')", [], id="but here they do"),
    ],
)
def test_what_is_wrong_with_expressions(expression: str, faults: list[str]) -> None:
    assert messages(selectors_faults([{"cel": {"expression": expression}}], "s")) == faults


def test_a_compiler_is_quoted() -> None:
    (fault,) = selectors_faults([{"cel": {"expression": "nope("}}], "s")
    assert fault.detail.startswith("compilation failed: ERROR: <input>:1:6: Syntax error: unexpected end of expression")
    (fault,) = selectors_faults([{"cel": {"expression": ""}}], "s")
    assert fault.detail.startswith("compilation failed: ERROR: <input>:1:0: Syntax error: unexpected end of expression")
    (fault,) = selectors_faults([{"cel": {"expression": "'a'.matches('(')"}}], "s")
    assert "invalid matches argument" in fault.detail


def test_selectors_are_few_and_not_empty() -> None:
    assert messages(selectors_faults([{}], "s")) == ["s[0].cel: Required value"]
    assert messages(selectors_faults([{}] * 33, "s")) == ["s: Too many: 33: must have at most 32 items"]


@pytest.mark.parametrize(
    ("config", "faults"),
    [
        pytest.param({}, ["c.opaque: Required value"], id="nothing"),
        pytest.param({"opaque": {"driver": "d", "parameters": {"a": 1}}}, [], id="an object"),
        pytest.param(
            {"opaque": {"driver": "", "parameters": None}},
            ["c.opaque.driver: Required value", "c.opaque.parameters: Required value"],
            id="for nobody",
        ),
        pytest.param(
            {"opaque": {"driver": "d", "parameters": [1]}},
            ['c.opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object'],
            id="a list",
        ),
        pytest.param(
            {"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}},
            ["c.opaque.parameters: Too long: may not be more than 10240 bytes"],
            id="a lot",
        ),
    ],
)
def test_what_is_wrong_with_parameters(config: dict[str, Any], faults: list[str]) -> None:
    assert messages(configuration_faults(config, "c")) == faults


def test_what_was_stored_may_be_large() -> None:
    assert configuration_faults({"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}, "c", True) == []


@pytest.mark.parametrize(
    ("awaited", "failures", "faults"),
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
            id="an endless wait",
        ),
        pytest.param(
            [],
            ["a"],
            [
                "d.bindingConditions: Invalid value: null: "
                "bindingConditions are required to use bindingFailureConditions"
            ],
            id="a wait for nothing",
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
            id="twice, and of both sorts",
        ),
        pytest.param(
            list("abcde"), ["z"], ["d.bindingConditions: Too many: 5: must have at most 4 items"], id="too many"
        ),
    ],
)
def test_what_is_wrong_with_conditions(awaited: list[str], failures: list[str], faults: list[str]) -> None:
    holder = {"bindingConditions": awaited, "bindingFailureConditions": failures}
    assert messages(binding_conditions_faults(holder, "d")) == faults
