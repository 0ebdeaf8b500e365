"""Endpoint slices, created and changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.workload_builders import body, changed, created, updated

TOPOLOGY = {"deprecatedTopology": {"kubernetes.io/hostname": "node-1", "x": "y"}}


def test_old_topology_is_not_written_any_more() -> None:
    obj = created(body("EndpointSlice", endpoints=[{"addresses": ["10.0.0.1"], **TOPOLOGY}])).obj
    assert obj["endpoints"] == [{"addresses": ["10.0.0.1"], "conditions": {}}]


def test_a_node_that_was_known_by_topology_stays_known() -> None:
    plain = created(body("EndpointSlice")).obj
    old = changed(plain, endpoints=[{**plain["endpoints"][0], **TOPOLOGY}])
    obj = updated(body("EndpointSlice", endpoints=[{"addresses": ["10.0.0.2"], **TOPOLOGY}]), old).obj
    assert obj["endpoints"] == [{"addresses": ["10.0.0.2"], "conditions": {}, "nodeName": "node-1"}]


def test_empty_lists_are_stored_as_none() -> None:
    obj = created(body("EndpointSlice", endpoints=[], ports=[])).obj
    assert (obj["endpoints"], obj["ports"]) == (None, None)


@pytest.mark.parametrize(
    ("changes", "generation"),
    [
        pytest.param({"ports": [{"port": 81}]}, 2, id="ports count"),
        pytest.param({"metadata__labels": {"a": "b"}}, 2, id="labels count"),
        pytest.param({"metadata__annotations": {"a": "b"}}, 1, id="annotations do not"),
    ],
)
def test_what_counts(changes: dict[str, Any], generation: int) -> None:
    old = created(body("EndpointSlice")).obj
    assert updated(body("EndpointSlice", **changes), old).obj["metadata"]["generation"] == generation


def test_names_instead_of_addresses_are_warned_of() -> None:
    named = body("EndpointSlice", addressType="FQDN", endpoints=[{"addresses": ["example.com"]}])
    assert created(named).warnings == ["spec.addressType: FQDN endpoints are deprecated"]
