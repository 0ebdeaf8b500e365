"""Devices as a resource: what the plugins that count resources make of them."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.views.devices import ResourceSlice
from mooring.scheduler.devices.dra_manager import DRAManager
from mooring.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.scheduler.plugins.node_resources_fit import NodeResourcesFit
from tests.api.builders import node_selector, term
from tests.builders import ZONE, node, pod
from tests.device_builders import GPU, claim, claiming, device, device_class, given, gpus, slice_of, wants
from tests.scheduler.harness import decide, engine_of, scored_by, settle

GPUS = "example.com/gpu"


def config(plugin: str, **args: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}],
    }


MOST = config("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": [{"name": GPUS, "weight": 1}]})
BALANCED = config(
    "NodeResourcesBalancedAllocation", resources=[{"name": GPUS, "weight": 1}, {"name": "cpu", "weight": 1}]
)


def test_scores_count_devices_where_a_node_offers_nothing_itself() -> None:
    views = (
        node("n1"),
        node("n2"),
        node("n3", others={GPUS: 5}),
        gpus("n1", 4),
        gpus("n2", 4),
        device_class(resource=GPUS),
        claim("c", wants(), has=given("gpu-0", pool="n2")),
    )
    engine = engine_of(*views, config=MOST)
    assert scored_by(engine, NodeResourcesFit, pod(others={GPUS: 1})) == {"n1": 25, "n2": 50, "n3": 20}
    engine.put(claim("d", wants(), has=given("gpu-1", pool="n2")))
    assert scored_by(engine, NodeResourcesFit, pod(others={GPUS: 1})) == {"n1": 25, "n2": 75, "n3": 20}


def test_what_is_kept_of_scores_is_forgotten_when_devices_are_given_away() -> None:
    views = (node("n1"), node("n2"), gpus("n1", 2), gpus("n2", 4), device_class(resource=GPUS), claim("c", wants()))
    engine = engine_of(*views, config=MOST)
    assert decide(engine, pod("a", others={GPUS: 1})).node_name == "n1"
    assert settle(engine, *(claiming(f"p{n}", "c") for n in range(1))) == ["n1"]
    fresh = decide(engine, pod("b", others={GPUS: 1}))
    assert {name: scores["NodeResourcesFit"] for name, scores in fresh.scores.items()} == {"n1": 100, "n2": 25}


def test_balance_counts_devices_too() -> None:
    engine = engine_of(node("n1", cpu=4), gpus("n1", 4), device_class(resource=GPUS), config=BALANCED)
    assert scored_by(engine, NodeResourcesBalancedAllocation, pod(cpu=1, others={GPUS: 1})) == {"n1": 75}
    assert scored_by(engine, NodeResourcesBalancedAllocation, pod(cpu=1, others={GPUS: 4})) == {"n1": 56}


@pytest.mark.parametrize(
    ("published", "totals"),
    [
        pytest.param(gpus("n1", 2), (2, 0), id="of one node"),
        pytest.param(slice_of(device("d"), everywhere=True), (1, 1), id="that all reach"),
        pytest.param(
            slice_of(device("d"), reached=node_selector(term(f"{ZONE} In b"))), (0, 1), id="that a zone reaches"
        ),
        pytest.param(slice_of(device("d")), (1, 1), id="that say nothing count everywhere"),
        pytest.param(slice_of(device("d"), node="n1", of=2), (1, 0), id="of an incomplete pool"),
        pytest.param(
            slice_of(device("d", on="n1"), device("e", everywhere=True), per_device=True), (2, 1), id="each for itself"
        ),
        pytest.param(slice_of(device("d", shared=True), node="n1"), (1, 0), id="that may be shared"),
    ],
)
def test_which_devices_count(published: ResourceSlice, totals: tuple[int, int]) -> None:
    kind = device_class("unshared", "device.allowMultipleAllocations == false")
    engine = engine_of(node("n1", zone="a"), node("n2", zone="b"), published, kind)
    found = engine.columns.shared(DRAManager).totals(kind)
    assert tuple(found.devices.tolist()) == totals


def test_an_expression_that_fails_makes_it_nothing() -> None:
    kind = device_class("odd", f'device.attributes["{GPU}"].x == 1')
    engine = engine_of(node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1, x=1), kind)
    assert engine.columns.shared(DRAManager).totals(kind).devices.tolist() == [0, 1]
