"""A device of a slice: what it is, what it consumes, what keeps it from use, and where it can be used."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.resource_slice_device import device_faults
from tests.apiserver.field_errors import messages

PER_DEVICE = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
ONE_WAY = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {PER_DEVICE}"


def faults_of(is_per_device: bool = False, old: dict[str, Any] | None = None, **parts: Any) -> list[str]:
    return messages(device_faults({"name": "d", **parts}, old, "d", is_per_device))


@pytest.mark.parametrize(
    ("parts", "faults"),
    [
        pytest.param({}, [], id="a plain device"),
        pytest.param({"attributes": {"a": {"int": 0}, "x.y/b": {"version": "1.2.3-rc.1+b"}}}, [], id="with attributes"),
        pytest.param(
            {"attributes": {"a": {}}},
            ['d.attributes[a]: Invalid value: "": exactly one value must be specified'],
            id="an attribute of nothing",
        ),
        pytest.param(
            {"attributes": {"a": {"version": "1.0"}}},
            ['d.attributes[a].version: Invalid value: "1.0": must be a string compatible with semver.org spec 2.0.0'],
            id="no version",
        ),
        pytest.param(
            {"attributes": {"a": {"string": "x" * 65}}},
            ["d.attributes[a].string: Too long: may not be more than 64 bytes"],
            id="a long text",
        ),
        pytest.param(
            {"attributes": {f"a{number}": {"int": 1} for number in range(33)}},
            ["d: Invalid value: 33: the total number of attributes and capacities must not exceed 32"],
            id="too many attributes",
        ),
        pytest.param(
            {"capacity": {"m": {"value": "1", "requestPolicy": {}}}},
            ["d.capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
            id="a policy for one user",
        ),
        pytest.param(
            {"taints": [{"key": "a"}]}, ["d.taints[0].effect: Required value"], id="a taint without an effect"
        ),
        pytest.param(
            {"taints": [{"key": "a", "effect": "X"}]},
            [
                'd.taints[0].effect: Unsupported value: "X": supported values: "NoExecute", "NoSchedule", "None"',
            ],
            id="a taint with an unknown effect",
        ),
        pytest.param(
            {"consumesCounters": [{}]},
            ["d.consumesCounters[0].counterSet: Required value", "d.consumesCounters[0].counters: Required value"],
            id="consumes nothing of nobody",
        ),
        pytest.param(
            {"consumesCounters": [{"counterSet": "s", "counters": {f"m{n}": {"value": "1"} for n in range(33)}}]},
            ["d.consumesCounters[0].counters: Too many: 33: must have at most 32 items"],
            id="consumes too many",
        ),
        pytest.param(
            {"nodeName": "n"},
            [f"d: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if {PER_DEVICE}"],
            id="not its business",
        ),
    ],
)
def test_what_is_wrong_with_a_device(parts: dict[str, Any], faults: list[str]) -> None:
    assert faults_of(**parts) == faults


@pytest.mark.parametrize(
    ("parts", "faults"),
    [
        pytest.param({"nodeName": "n"}, [], id="a node"),
        pytest.param({}, [f"d: Required value: {ONE_WAY}"], id="nowhere"),
        pytest.param(
            {"nodeName": "n", "allNodes": True},
            [f'd: Invalid value: "{{`nodeName`, `allNodes`}}": {ONE_WAY}'],
            id="two ways",
        ),
        pytest.param(
            {"nodeName": "", "allNodes": False},
            [
                'd.nodeName: Invalid value: "": must not be empty',
                "d.allNodes: Invalid value: false: must be either unset or set to true",
                f"d: Required value: {ONE_WAY}",
            ],
            id="neither nor",
        ),
    ],
)
def test_a_device_may_say_where_it_can_be_used(parts: dict[str, Any], faults: list[str]) -> None:
    assert faults_of(is_per_device=True, **parts) == faults


def test_taints_that_stay_are_not_judged_again() -> None:
    odd = [{"key": "a", "effect": "X"}]
    assert faults_of(old={"name": "d", "taints": odd}, taints=odd) == []


def test_two_values_are_printed_like_a_struct() -> None:
    (fault,) = faults_of(attributes={"a": {"int": 1, "bool": True}})
    assert '"Int":1,"Bool":true' in fault
