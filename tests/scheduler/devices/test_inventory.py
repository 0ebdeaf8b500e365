"""The devices of the cluster, and the rows that a change concerns."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.api.views.devices import ResourceClaim, ResourceSlice
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices import dra_manager as dra_manager
from mooring.scheduler.devices.dra_manager import DRAManager, Inventory
from tests.api.builders import node_selector, term
from tests.builders import ZONE, node
from tests.device_builders import claim, device, given, gpus, slice_of
from tests.scheduler.devices.clusters import columns_of

IN_A = node_selector(term(f"{ZONE} In a"))


def seen(columns: Columns) -> dict[str, list[str]]:
    """The pools that each node sees; in brackets those that give nothing."""
    inventory = Inventory(columns)
    inventory.sync()
    return {
        name: [
            f"({pool.id[1]})" if pool.is_incomplete or pool.is_invalid else f"{pool.id[1]}:{len(pool.devices)}"
            for pool in inventory.pools(row)
        ]
        for name, row in columns.row_of.items()
    }


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([gpus("n1", 2)], {"n1": ["n1:2"], "n2": [], "n3": []}, id="devices of one node"),
        pytest.param(
            [slice_of(device("d"), everywhere=True)],
            {"n1": ["pool:1"], "n2": ["pool:1"], "n3": ["pool:1"]},
            id="devices that all reach",
        ),
        pytest.param(
            [slice_of(device("d"), reached=IN_A)],
            {"n1": ["pool:1"], "n2": ["pool:1"], "n3": []},
            id="devices that a zone reaches",
        ),
        pytest.param(
            [slice_of(device("d", on="n1"), device("e", reached=IN_A), device("f", everywhere=True), per_device=True)],
            {"n1": ["pool:3"], "n2": ["pool:3"], "n3": ["pool:3"]},
            id="devices that say it themselves: the slice reaches whom one of them reaches",
        ),
        pytest.param([slice_of(device("d"))], {"n1": [], "n2": [], "n3": []}, id="devices that say nothing"),
        pytest.param(
            [
                slice_of(device("d"), node="n1", pool="x", name="1", of=2),
                slice_of(device("e"), node="n2", pool="x", name="2", of=2),
            ],
            {"n1": ["x:1"], "n2": ["x:1"], "n3": []},
            id="a pool of several nodes",
        ),
        pytest.param(
            [slice_of(device("d"), node="n1", of=2)],
            {"n1": ["(n1)"], "n2": [], "n3": []},
            id="an incomplete pool concerns its node",
        ),
        pytest.param(
            [slice_of(counters={"m": 1}, node="n1", name="c", of=2)],
            {"n1": ["(n1)"], "n2": ["(n1)"], "n3": ["(n1)"]},
            id="unless it has counters: then it concerns all",
        ),
        pytest.param(
            [slice_of(counters={"m": 1}, node="n1", name="c", of=2), slice_of(device("d"), node="n1", name="s", of=2)],
            {"n1": ["n1:1"], "n2": [], "n3": []},
            id="complete, it concerns its node again",
        ),
        pytest.param(
            [
                gpus("n1", 1),
                slice_of(device("r", ready_when=["up"]), node="n1", pool="a"),
                slice_of(device("z"), everywhere=True, pool="z"),
            ],
            {"n1": ["n1:1", "z:1", "a:1"], "n2": ["z:1"], "n3": ["z:1"]},
            id="by name, and what must be bound first comes last",
        ),
    ],
)
def test_which_pools_a_node_sees(slices: list[ResourceSlice], expected: dict[str, list[str]]) -> None:
    assert seen(columns_of(*slices)) == expected


def test_a_selector_that_cannot_be_read_hides_everything() -> None:
    inventory = Inventory(columns_of(slice_of(device("d"), name="s", reached=node_selector(term("zone Like a")))))
    inventory.sync()
    assert (inventory.error or "").startswith(
        "gather pool information: failed to perform node selection for slice s: failed to parse node selector "
        "&NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{NodeSelectorTerm{MatchExpressions:"
        "[]NodeSelectorRequirement{NodeSelectorRequirement{Key:zone,Operator:Like,Values:[a],},},"
    )


# --- Rows with the same devices and allocations have the same code


def test_rows_in_the_same_state_have_the_same_code() -> None:
    columns = columns_of(gpus("n1", 2), gpus("n2", 2), gpus("n3", 3))
    manager = DRAManager(columns)
    manager.sync()
    assert manager.codes[0] == manager.codes[1]
    assert manager.codes[0] != manager.codes[2]
    columns.objects.of(ResourceClaim).put(claim("c", has=given("gpu-0", pool="n1")))
    manager.sync()
    assert manager.codes[0] != manager.codes[1]
    columns.objects.of(ResourceClaim).put(claim("d", has=given("gpu-0", pool="n2")))
    manager.sync()
    assert manager.codes[0] == manager.codes[1]


def test_rows_with_the_same_devices_are_grouped() -> None:
    columns = columns_of(gpus("n1", 2), gpus("n2", 3), gpus("n3", 2))
    manager = DRAManager(columns)
    manager.sync()
    assert [places.tolist() for places in manager.group_alike(np.array([2, 1, 0]))] == [[0, 2], [1]]
    assert manager.group_alike(np.zeros(0, dtype=np.int64)) == []


def test_a_shared_device_that_is_taken_changes_its_groups_and_no_codes() -> None:
    columns = columns_of(slice_of(device("d"), everywhere=True), gpus("n1", 1))
    manager = DRAManager(columns)
    manager.sync()
    codes, uses = manager.codes.tolist(), list(manager.group_uses)
    assert manager.groups[0] == manager.groups[1] == manager.groups[2]
    columns.objects.of(ResourceClaim).put(claim("c", has=given("d", pool="pool")))
    manager.sync()
    assert manager.codes.tolist() == codes
    assert manager.group_uses != uses


def test_only_rows_that_changed_are_reported() -> None:
    columns = columns_of(gpus("n1", 1), gpus("n2", 1))
    manager = DRAManager(columns)
    manager.sync()
    position = manager.changes.position
    columns.objects.of(ResourceClaim).put(claim("c", has=given("gpu-0", pool="n2")))
    manager.sync()
    changed = manager.changes.since(position)
    assert changed is not None
    assert changed.tolist() == [1]


def test_states_are_numbered_anew_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dra_manager, "CODES_MAX", 1)
    columns = columns_of(gpus("n1", 1), gpus("n2", 2))
    manager = DRAManager(columns)
    manager.sync()
    generation = manager.generation
    columns.objects.of(ResourceSlice).put(gpus("n3", 2))
    manager.sync()
    assert manager.generation > generation
    assert manager.codes[1] == manager.codes[2]


def test_nodes_that_come_later_are_seen() -> None:
    columns = columns_of(gpus("n4", 1))
    manager = DRAManager(columns)
    manager.sync()
    columns.put_node(node("n4"))
    manager.sync()
    assert [pool.id[1] for pool in manager.inventory.pools(3)] == ["n4"]
