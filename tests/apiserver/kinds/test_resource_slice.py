"""Tests of kinds.resource_slice."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import RESOURCE_SLICE
from mooring.apiserver.kinds.resource_slice import (
    validate_device,
    validate_resource_slice,
    validate_shared_capacity,
    validate_whole_capacity,
)
from tests.apiserver.core_documents import NOW, call, changed, created, document, messages, strategy

INVALID_DEFAULT = "default value is not valid according to the requestPolicy"


@pytest.mark.parametrize(
    ("policy", "errors"),
    [
        pytest.param({}, [], id="empty"),
        pytest.param({"default": "1"}, [], id="only a default"),
        pytest.param({"default": "1", "validValues": ["1", "2"]}, [], id="valid values"),
        pytest.param(
            {"validValues": ["1"]}, [".default: Required value: required when validValues is defined"], id="no default"
        ),
        pytest.param(
            {"default": "3", "validValues": ["1"]},
            [f'.validValues: Invalid value: "3": {INVALID_DEFAULT}'],
            id="a default that is no valid value",
        ),
        pytest.param(
            {"default": "1", "validValues": ["2", "1"]},
            ['.validValues[1]: Invalid value: "1": values must be sorted in ascending order'],
            id="unsorted values",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "1"]},
            ['.validValues[1]: Duplicate value: "1"'],
            id="a duplicate value",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1", "11"]},
            ['.validValues[1]: Invalid value: "11": option is larger than capacity value: 10'],
            id="a value above the capacity",
        ),
        pytest.param(
            {"default": "1", "validValues": [str(number) for number in range(1, 12)]},
            [
                ".validValues: Too many: 11: must have at most 10 items",
                f'.validValues: Invalid value: "1": {INVALID_DEFAULT}',
            ],
            id="too many valid values",
        ),
        pytest.param(
            {"default": "1", "validValues": ["1"], "validRange": {"min": "1"}},
            [
                ': Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" '
                "at the same time"
            ],
            id="valid values and a range",
        ),
        pytest.param({"default": "4", "validRange": {"min": "2", "max": "8", "step": "2"}}, [], id="a range"),
        pytest.param(
            {"default": "1", "validRange": {}},
            [".validRange.min: Required value: required when validRange is defined"],
            id="a range without a beginning",
        ),
        pytest.param(
            {"default": "5", "validRange": {"min": "2", "max": "1"}},
            [
                '.validRange.max: Invalid value: "2": min is larger than max: 1',
                '.validRange.max: Invalid value: "5": default is more than max: 1',
            ],
            id="min above max",
        ),
        pytest.param(
            {"default": "1", "validRange": {"min": "11"}},
            [
                '.validRange.min: Invalid value: "11": min is larger than capacity value: 10',
                '.validRange.min: Invalid value: "1": default is less than min: 11',
            ],
            id="min above the capacity",
        ),
        pytest.param(
            {"default": "3", "validRange": {"min": "2", "step": "20"}},
            [
                '.validRange.step: Invalid value: "20": one step 22 is larger than capacity value: 10',
                '.validRange.step: Invalid value: "3": value is not a multiple of a given step (20) from (2)',
            ],
            id="a large step",
        ),
        pytest.param({"default": "3", "validRange": {"min": "2", "step": "0"}}, [], id="a step of zero"),
    ],
)
def test_request_policies_of_capacities_are_validated(policy: dict[str, Any], errors: list[str]) -> None:
    capacity = {"value": "10", "requestPolicy": policy}
    assert messages(validate_shared_capacity(capacity, "c")) == [f"c.requestPolicy{error}" for error in errors]


def test_request_policies_are_only_for_shared_devices() -> None:
    assert validate_whole_capacity({"value": "10"}, "c") == []
    assert messages(validate_whole_capacity({"value": "10", "requestPolicy": {}}, "c")) == [
        "c.requestPolicy: Forbidden: allowMultipleAllocations must be true"
    ]


PER_DEVICE = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
DEVICE_NODE_SELECTION = f"exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when {PER_DEVICE}"


def errors_of(is_per_device: bool = False, old: dict[str, Any] | None = None, **parts: Any) -> list[str]:
    return messages(validate_device({"name": "d", **parts}, old, "d", is_per_device))


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        pytest.param({}, [], id="a plain device"),
        pytest.param({"attributes": {"a": {"int": 0}, "x.y/b": {"version": "1.2.3-rc.1+b"}}}, [], id="with attributes"),
        pytest.param(
            {"attributes": {"a": {}}},
            ['d.attributes[a]: Invalid value: "": exactly one value must be specified'],
            id="an attribute without a value",
        ),
        pytest.param(
            {"attributes": {"a": {"version": "1.0"}}},
            ['d.attributes[a].version: Invalid value: "1.0": must be a string compatible with semver.org spec 2.0.0'],
            id="no version",
        ),
        pytest.param(
            {"attributes": {"a": {"string": "x" * 65}}},
            ["d.attributes[a].string: Too long: may not be more than 64 bytes"],
            id="a long string",
        ),
        pytest.param(
            {"attributes": {f"a{number}": {"int": 1} for number in range(33)}},
            ["d: Invalid value: 33: the total number of attributes and capacities must not exceed 32"],
            id="too many attributes",
        ),
        pytest.param(
            {"capacity": {"m": {"value": "1", "requestPolicy": {}}}},
            ["d.capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
            id="a policy of a device that is not shared",
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
            id="empty consumed counters",
        ),
        pytest.param(
            {"consumesCounters": [{"counterSet": "s", "counters": {f"m{n}": {"value": "1"} for n in range(33)}}]},
            ["d.consumesCounters[0].counters: Too many: 33: must have at most 32 items"],
            id="too many consumed counters",
        ),
        pytest.param(
            {"nodeName": "n"},
            [f"d: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if {PER_DEVICE}"],
            id="node selection of a device",
        ),
    ],
)
def test_devices_are_validated(parts: dict[str, Any], errors: list[str]) -> None:
    assert errors_of(**parts) == errors


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        pytest.param({"nodeName": "n"}, [], id="a node"),
        pytest.param({}, [f"d: Required value: {DEVICE_NODE_SELECTION}"], id="no node selection"),
        pytest.param(
            {"nodeName": "n", "allNodes": True},
            [f'd: Invalid value: "{{`nodeName`, `allNodes`}}": {DEVICE_NODE_SELECTION}'],
            id="two node selections",
        ),
        pytest.param(
            {"nodeName": "", "allNodes": False},
            [
                'd.nodeName: Invalid value: "": must not be empty',
                "d.allNodes: Invalid value: false: must be either unset or set to true",
                f"d: Required value: {DEVICE_NODE_SELECTION}",
            ],
            id="empty node selections",
        ),
    ],
)
def test_node_selection_of_devices_is_validated(parts: dict[str, Any], errors: list[str]) -> None:
    assert errors_of(is_per_device=True, **parts) == errors


def test_unchanged_taints_are_not_validated_again() -> None:
    odd = [{"key": "a", "effect": "X"}]
    assert errors_of(old={"name": "d", "taints": odd}, taints=odd) == []


def test_an_attribute_with_two_values_is_printed_as_a_struct() -> None:
    (error,) = errors_of(attributes={"a": {"int": 1, "bool": True}})
    assert '"Int":1,"Bool":true' in error


SLICE_NODE_SELECTION = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
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
    ("parts", "errors"),
    [
        pytest.param({}, [], id="an empty slice of a node"),
        pytest.param({"driver": ""}, ["spec.driver: Required value"], id="no driver"),
        pytest.param(
            {"pool": {"name": "", "generation": -1}},
            [
                "spec.pool.name: Required value",
                "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
            ],
            id="an invalid pool",
        ),
        pytest.param({"nodeName": None}, [f"spec: Required value: {SLICE_NODE_SELECTION}"], id="no node selection"),
        pytest.param({"nodeName": None, "allNodes": True}, [], id="all nodes"),
        pytest.param({"nodeName": None, "nodeSelector": SELECTOR}, [], id="a node selector"),
        pytest.param(
            {"allNodes": True},
            [f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {SLICE_NODE_SELECTION}, but multiple fields are set'],
            id="a node and all nodes",
        ),
        pytest.param(
            {"nodeName": "", "allNodes": False},
            [
                'spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string',
                "spec.allNodes: Invalid value: false: must be either unset or set to true",
                f"spec: Required value: {SLICE_NODE_SELECTION}",
            ],
            id="empty node selections",
        ),
        pytest.param(
            {"devices": [{"name": "d"}], "sharedCounters": [COUNTERS]},
            ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
            id="devices and counters",
        ),
        pytest.param(
            {"devices": [{"name": "d"}] * 2}, ['spec.devices[1]: Duplicate value: "d"'], id="a duplicate device"
        ),
        pytest.param(
            {"devices": [{"name": f"d{number}"} for number in range(129)]},
            ["spec.devices: Too many: 129: must have at most 128 items"],
            id="too many devices",
        ),
        pytest.param(
            {"devices": [{"name": f"d{number}", "taints": [{"key": "a", "effect": "None"}]} for number in range(65)]},
            ["spec.devices: Too many: 65: must have at most 64 items"],
            id="too many devices with taints",
        ),
        pytest.param(
            {"sharedCounters": [{"name": ""}]},
            ["spec.sharedCounters[0].name: Required value", "spec.sharedCounters[0].counters: Required value"],
            id="empty counters",
        ),
        pytest.param(
            {"sharedCounters": [COUNTERS, COUNTERS]},
            ['spec.sharedCounters[1]: Duplicate value: "s"'],
            id="duplicate counters",
        ),
    ],
)
def test_resource_slices_are_validated(parts: dict[str, Any], errors: list[str]) -> None:
    assert messages(validate_resource_slice(spec(**parts), None, "spec")) == errors


def test_a_node_selector_must_have_exactly_one_term() -> None:
    two = {"nodeSelectorTerms": SELECTOR["nodeSelectorTerms"] * 2}
    (error,) = validate_resource_slice(spec(nodeName=None, nodeSelector=two), None, "spec")
    assert (error.field, error.detail) == (
        "spec.nodeSelector.nodeSelectorTerms",
        "must have exactly one node selector term",
    )


def test_immutable_fields_of_resource_slices() -> None:
    pool = {"name": "q", "generation": 2, "resourceSliceCount": 3}
    assert validate_resource_slice(spec(pool={**pool, "name": "p"}), spec(), "spec") == []
    changed = spec(driver="e.example.com", pool=pool, nodeName=None, allNodes=True)
    assert messages(validate_resource_slice(changed, spec(), "spec")) == [
        'spec.pool.name: Invalid value: "q": field is immutable',
        'spec.driver: Invalid value: "e.example.com": field is immutable',
        "spec.nodeName: Invalid value: null: field is immutable",
    ]


POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
LONG_AGO = "2020-01-01T00:00:00Z"


def slice_spec(*devices: dict[str, Any], driver: str = "d.example.com") -> dict[str, Any]:
    return {"driver": driver, "pool": POOL, "nodeName": "n", "devices": list(devices)}


def test_taints_without_a_time_get_the_current_one() -> None:
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "None", "timeAdded": LONG_AGO}]
    made = document(RESOURCE_SLICE, spec=slice_spec({"name": "d", "taints": taints}))
    assert created(RESOURCE_SLICE, made) == []
    assert [taint["timeAdded"] for taint in made["spec"]["devices"][0]["taints"]] == [NOW, LONG_AGO]
    assert made["metadata"]["generation"] == 1


def test_disabled_fields_are_dropped_but_increment_the_generation() -> None:
    device = {
        "name": "d",
        "attributes": {"a": {"ints": [1], "int": 2}},
        "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "x"}},
    }
    old = document(
        RESOURCE_SLICE,
        {"generation": 1},
        spec=slice_spec({"name": "d", "attributes": {"a": {"int": 2}}}),
    )
    errors, new = changed(RESOURCE_SLICE, old, spec=slice_spec(device))
    assert (errors, new["spec"]) == ([], old["spec"])
    assert new["metadata"]["generation"] == 2


def test_equal_amounts_in_other_units_do_not_increment_the_generation() -> None:
    old = document(
        RESOURCE_SLICE,
        {"generation": 1},
        spec=slice_spec({"name": "d", "capacity": {"m": {"value": "1Gi"}}}),
    )
    _, new = changed(RESOURCE_SLICE, old, spec=slice_spec({"name": "d", "capacity": {"m": {"value": "1024Mi"}}}))
    assert new["metadata"]["generation"] == 1


def test_driver_names_in_upper_case_have_a_warning() -> None:
    made, kind_strategy = (
        document(RESOURCE_SLICE, spec=slice_spec(driver="D.example.com")),
        strategy(RESOURCE_SLICE),
    )
    expected = ['spec.driver: driver names should be lowercase; "D.example.com" contains uppercase characters']
    assert kind_strategy.warnings_on_create(made, call(RESOURCE_SLICE)) == expected
    assert kind_strategy.warnings_on_update(made, made, call(RESOURCE_SLICE)) == expected
    assert kind_strategy.warnings_on_create(document(RESOURCE_SLICE, spec=slice_spec()), call(RESOURCE_SLICE)) == []


def test_resource_slices_can_be_selected_by_node_and_driver() -> None:
    made = document(RESOURCE_SLICE, spec={"driver": "d", "pool": POOL, "allNodes": True})
    assert strategy(RESOURCE_SLICE).selectable_fields(made) == {"spec.nodeName": "", "spec.driver": "d"}
