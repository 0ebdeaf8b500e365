"""The inventory: which pools each node sees."""

from __future__ import annotations

import pytest

from mooring.api.views.devices import ResourceSlice
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.devices.inventory import Inventory
from tests.api.builders import node_selector, term
from tests.builders import ZONE
from tests.device_builders import device, gpus, slice_of
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
