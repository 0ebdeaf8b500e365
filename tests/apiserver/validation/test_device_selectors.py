"""Expressions compile and stay cheap; parameters are JSON objects of a modest size."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.device_selectors import configuration_faults, selectors_faults
from tests.apiserver.field_errors import messages

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
