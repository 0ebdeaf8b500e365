"""What a plugin for one node at a time reads of the node and its pods."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mooring.scheduler.cache.columns import Transaction
from mooring.scheduler.engine import Engine
from mooring.scheduler.framework.node_plugins import NodeInfo
from tests.builders import HOSTNAME, ZONE, node, pod
from tests.scheduler.framework.node_plugins import (
    node_info,
)
from tests.scheduler.harness import engine_of


def small_cluster() -> Engine:
    return engine_of(
        node(
            "n1", cpu=4, memory=1000, pods=10, zone="a", taints=["gpu=true:NoSchedule"], others={"example.com/gpu": 2}
        ),
        node("n2"),
        pod("a", on="n1", cpu="1500m", memory=300),
        pod("b", on="n1", cpu="500m", others={"example.com/gpu": 2}),
    )


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        pytest.param(lambda n: n.name, "n1", id="its name"),
        pytest.param(lambda n: n.labels, {HOSTNAME: "n1", ZONE: "a"}, id="its labels"),
        pytest.param(lambda n: dict(n.annotations), {}, id="its annotations"),
        pytest.param(lambda n: n.zone, "a", id="its zone"),
        pytest.param(lambda n: [(t.key, t.effect) for t in n.taints], [("gpu", "NoSchedule")], id="its taints"),
        pytest.param(lambda n: n.node.metadata.name, "n1", id="the whole node"),
        pytest.param(lambda n: n.allocatable["cpu"], 4000, id="cpu in thousandths"),
        pytest.param(lambda n: n.requested["cpu"], 2000, id="what its pods requested"),
        pytest.param(
            lambda n: n.free,
            {"cpu": 2000, "memory": 700, "pods": 8, "example.com/gpu": 0},
            id="what is free, of everything that it offers",
        ),
        pytest.param(lambda n: n.free["example.com/fpga"], 0, id="0 of a resource that no node has"),
        pytest.param(lambda n: ("cpu" in n.free, "example.com/fpga" in n.free), (True, False), id="what it knows"),
        pytest.param(lambda n: n.pod_count, 2, id="how many pods"),
        pytest.param(lambda n: [p.key for p in n.pods], ["default/a", "default/b"], id="which pods"),
        pytest.param(repr, "NodeInfo(n1)", id="its name, in a debugger"),
    ],
)
def test_a_node_info_shows(read: Callable[[NodeInfo], object], expected: object) -> None:
    assert read(node_info(small_cluster(), "n1")) == expected


def test_a_node_without_a_zone_has_none() -> None:
    assert node_info(small_cluster(), "n2").zone is None


@pytest.mark.parametrize("attribute", ["name", "labels", "free", "pods", "anything_else"])
def test_a_node_info_cannot_be_written(attribute: str) -> None:
    with pytest.raises(AttributeError):
        setattr(node_info(small_cluster(), "n1"), attribute, None)


def test_reading_an_unknown_resource_does_not_add_it() -> None:
    engine = small_cluster()
    before = list(engine.columns.resources.names)
    assert node_info(engine, "n1").free["example.com/fpga"] == 0
    assert engine.columns.resources.names == before


def test_a_node_info_follows_its_node() -> None:
    engine = small_cluster()
    n2 = node_info(engine, "n2")
    engine.put(node("n2", zone="b"))
    engine.put(pod("c", on="n2", cpu=1))
    assert (n2.zone, n2.requested["cpu"], n2.pod_count) == ("b", 1000, 1)


def test_a_node_info_shows_the_state_of_a_transaction() -> None:
    engine = small_cluster()
    n1 = node_info(engine, "n1")
    with Transaction(engine.columns) as transaction:
        transaction.displace(engine.columns.pods["default/a"])
        assert ([p.name for p in n1.pods], n1.free["cpu"]) == (["b"], 3500)
    assert ([p.name for p in n1.pods], n1.free["cpu"]) == (["a", "b"], 2000)
