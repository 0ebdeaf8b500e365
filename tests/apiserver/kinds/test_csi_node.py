"""Tests of kinds.csi_node."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.kinds import CSI_NODE
from mooring.apiserver.kinds.csi_node import validate_csi_node, validate_csi_node_update
from tests.apiserver.core_documents import changed, created, document, messages, strategy


def driver(**parts: Any) -> dict[str, Any]:
    return {"name": "d.example.com", "nodeID": "n", **parts}


@pytest.mark.parametrize(
    ("drivers", "errors"),
    [
        pytest.param([], [], id="a node without drivers"),
        pytest.param([driver(allocatable={"count": 0}, topologyKeys=["a/b"])], [], id="a driver"),
        pytest.param(
            [driver(name="", nodeID="")],
            ["spec.drivers[0].name: Required value", "spec.drivers[0].nodeID: Required value"],
            id="neither name nor node ID",
        ),
        pytest.param(
            [driver(nodeID="x" * 257)],
            [f'spec.drivers[0].nodeID: Invalid value: "{"x" * 257}": must be 256 characters or less'],
            id="a long node ID",
        ),
        pytest.param(
            [driver(), driver()], ['spec.drivers[1].name: Duplicate value: "d.example.com"'], id="a duplicate driver"
        ),
        pytest.param(
            [driver(allocatable={"count": -1})],
            ["spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"],
            id="a negative count",
        ),
        pytest.param(
            [driver(topologyKeys=["a", "a"])],
            ['spec.drivers[0]: Duplicate value: "a"'],
            id="duplicate topology keys",
        ),
    ],
)
def test_drivers_of_csi_nodes_are_validated(drivers: list[dict[str, Any]], errors: list[str]) -> None:
    assert messages(validate_csi_node({"drivers": drivers}, "spec")) == errors


@pytest.mark.parametrize(
    ("drivers", "is_allowed"),
    [
        pytest.param([driver(topologyKeys=None, allocatable={"count": 9})], True, id="another number of volumes"),
        pytest.param([], True, id="the driver is removed"),
        pytest.param([driver(name="e"), driver(topologyKeys=[])], True, id="a driver is added"),
        pytest.param([driver(nodeID="m")], False, id="another node ID"),
        pytest.param([driver(topologyKeys=["a"])], False, id="another topology"),
    ],
)
def test_updates_of_drivers_of_csi_nodes_are_validated(drivers: list[dict[str, Any]], is_allowed: bool) -> None:
    errors = validate_csi_node_update({"drivers": drivers}, {"drivers": [driver()]}, "spec")
    assert (errors == []) is is_allowed
    for error in errors:
        assert (error.field, error.detail) == ("spec.drivers", "field is immutable")
        assert '"NodeID":' in error.body


def test_drivers_of_csi_nodes_can_be_added_but_not_changed() -> None:
    made = document(CSI_NODE, spec={"drivers": []})
    assert created(CSI_NODE, made) == []
    errors, new = changed(CSI_NODE, made, spec={"drivers": [{"name": "a", "nodeID": "b"}]})
    assert errors == []
    errors, _ = changed(CSI_NODE, new, spec={"drivers": [{"name": "a", "nodeID": "c"}]})
    assert [error.partition(":")[0] for error in errors] == ["spec.drivers"]
    assert not strategy(CSI_NODE).allows_unconditional_update
