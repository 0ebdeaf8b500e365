"""Slices: taints get a time, fields behind gates go, and every change of what was sent is counted."""

from __future__ import annotations

from typing import Any

from mooring.api.kinds import RESOURCE_SLICE
from tests.apiserver.core_documents import NOW, call, changed, created, document, strategy

POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
LONG_AGO = "2020-01-01T00:00:00Z"


def spec(*devices: dict[str, Any], driver: str = "d.example.com") -> dict[str, Any]:
    return {"driver": driver, "pool": POOL, "nodeName": "n", "devices": list(devices)}


def test_taints_get_a_time() -> None:
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "None", "timeAdded": LONG_AGO}]
    made = document(RESOURCE_SLICE, spec=spec({"name": "d", "taints": taints}))
    assert created(RESOURCE_SLICE, made) == []
    assert [taint["timeAdded"] for taint in made["spec"]["devices"][0]["taints"]] == [NOW, LONG_AGO]
    assert made["metadata"]["generation"] == 1


def test_fields_behind_gates_are_dropped_but_counted() -> None:
    device = {
        "name": "d",
        "attributes": {"a": {"ints": [1], "int": 2}},
        "nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "x"}},
    }
    old = document(RESOURCE_SLICE, {"generation": 1}, spec=spec({"name": "d", "attributes": {"a": {"int": 2}}}))
    faults, new = changed(RESOURCE_SLICE, old, spec=spec(device))
    assert (faults, new["spec"]) == ([], old["spec"])
    assert new["metadata"]["generation"] == 2


def test_amounts_that_mean_the_same_are_no_change() -> None:
    old = document(RESOURCE_SLICE, {"generation": 1}, spec=spec({"name": "d", "capacity": {"m": {"value": "1Gi"}}}))
    _, new = changed(RESOURCE_SLICE, old, spec=spec({"name": "d", "capacity": {"m": {"value": "1024Mi"}}}))
    assert new["metadata"]["generation"] == 1


def test_drivers_should_be_in_lower_case() -> None:
    made, how = document(RESOURCE_SLICE, spec=spec(driver="D.example.com")), strategy(RESOURCE_SLICE)
    wanted = ['spec.driver: driver names should be lowercase; "D.example.com" contains uppercase characters']
    assert how.warnings_on_create(made, call(RESOURCE_SLICE)) == wanted
    assert how.warnings_on_update(made, made, call(RESOURCE_SLICE)) == wanted
    assert how.warnings_on_create(document(RESOURCE_SLICE, spec=spec()), call(RESOURCE_SLICE)) == []


def test_slices_are_selected_by_node_and_driver() -> None:
    made = document(RESOURCE_SLICE, spec={"driver": "d", "pool": POOL, "allNodes": True})
    assert strategy(RESOURCE_SLICE).selectable_fields(made) == {"spec.nodeName": "", "spec.driver": "d"}
