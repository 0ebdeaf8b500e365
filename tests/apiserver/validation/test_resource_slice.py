"""A slice belongs to a driver, a pool and some nodes, and has devices or counters."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.validation.resource_slice import resource_slice_faults
from tests.apiserver.field_errors import messages

WAYS = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
COUNTERS = {"name": "s", "counters": {"m": {"value": "1"}}}
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}


def spec(**parts: Any) -> dict[str, Any]:
    made = {
        "driver": "d.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        **parts,
    }
    return {field: value for field, value in made.items() if value is not None}


@pytest.mark.parametrize(
    ("parts", "faults"),
    [
        pytest.param({}, [], id="an empty slice of a node"),
        pytest.param({"driver": ""}, ["spec.driver: Required value"], id="of nobody"),
        pytest.param(
            {"pool": {"name": "", "generation": -1}},
            [
                "spec.pool.name: Required value",
                "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
            ],
            id="a pool that cannot be",
        ),
        pytest.param({"nodeName": None}, [f"spec: Required value: {WAYS}"], id="nowhere"),
        pytest.param({"nodeName": None, "allNodes": True}, [], id="everywhere"),
        pytest.param({"nodeName": None, "nodeSelector": SELECTOR}, [], id="at some nodes"),
        pytest.param(
            {"allNodes": True},
            [f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {WAYS}, but multiple fields are set'],
            id="at a node and everywhere",
        ),
        pytest.param(
            {"nodeName": "", "allNodes": False},
            [
                'spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string',
                "spec.allNodes: Invalid value: false: must be either unset or set to true",
                f"spec: Required value: {WAYS}",
            ],
            id="neither nor",
        ),
        pytest.param(
            {"devices": [{"name": "d"}], "sharedCounters": [COUNTERS]},
            ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
            id="devices and counters",
        ),
        pytest.param({"devices": [{"name": "d"}] * 2}, ['spec.devices[1]: Duplicate value: "d"'], id="a device twice"),
        pytest.param(
            {"devices": [{"name": f"d{number}"} for number in range(129)]},
            ["spec.devices: Too many: 129: must have at most 128 items"],
            id="too many devices",
        ),
        pytest.param(
            {"devices": [{"name": f"d{number}", "taints": [{"key": "a", "effect": "None"}]} for number in range(65)]},
            ["spec.devices: Too many: 65: must have at most 64 items"],
            id="fewer if they are tainted",
        ),
        pytest.param(
            {"sharedCounters": [{"name": ""}]},
            ["spec.sharedCounters[0].name: Required value", "spec.sharedCounters[0].counters: Required value"],
            id="counters of nothing",
        ),
        pytest.param(
            {"sharedCounters": [COUNTERS, COUNTERS]},
            ['spec.sharedCounters[1]: Duplicate value: "s"'],
            id="a set of counters twice",
        ),
    ],
)
def test_what_is_wrong_with_a_slice(parts: dict[str, Any], faults: list[str]) -> None:
    assert messages(resource_slice_faults(spec(**parts), None, "spec")) == faults


def test_one_term_selects_nodes() -> None:
    two = {"nodeSelectorTerms": SELECTOR["nodeSelectorTerms"] * 2}
    (fault,) = resource_slice_faults(spec(nodeName=None, nodeSelector=two), None, "spec")
    assert (fault.field, fault.detail) == (
        "spec.nodeSelector.nodeSelectorTerms",
        "must have exactly one node selector term",
    )


def test_what_a_change_may_not_touch() -> None:
    pool = {"name": "q", "generation": 2, "resourceSliceCount": 3}
    assert resource_slice_faults(spec(pool={**pool, "name": "p"}), spec(), "spec") == []
    changed = spec(driver="e.example.com", pool=pool, nodeName=None, allNodes=True)
    assert messages(resource_slice_faults(changed, spec(), "spec")) == [
        'spec.pool.name: Invalid value: "q": field is immutable',
        'spec.driver: Invalid value: "e.example.com": field is immutable',
        "spec.nodeName: Invalid value: null: field is immutable",
    ]
