"""New nodes have what their example has: devices, volume limits, extended resources, pods of DaemonSets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from mooring.api.views.devices import ResourceSlice
from mooring.api.views.meta import ApiObject
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.api.views.storage import CSINode
from mooring.scheduler.plan.new_objects import cluster_objects_of_nodes
from mooring.scheduler.plan.planner import Planner
from mooring.scheduler.plan.request import NodeType, PlanRequest, PlanResult, Question
from tests.api.builders import node_selector, term
from tests.builders import claim as volume_claim
from tests.builders import csi_node, node, owned_by, persistent_volume, pod
from tests.device_builders import claim, claiming, device, device_class, given, gpus, slice_of, wants
from tests.scheduler.cache.logical_state import logical_state
from tests.scheduler.harness import engine_of

DRIVER = "disk.example.com"
"""Of volumes."""


def added(objects: Sequence[ApiObject], pods: Sequence[Pod], *examples: str) -> PlanResult:
    """The fewest nodes like these, which leave no trace in the cluster."""
    engine = engine_of(*objects)
    others = cluster_objects_of_nodes(engine.columns, examples)
    nodes = {view.metadata.name: view for view in objects if isinstance(view, Node)}
    types = tuple(
        NodeType(name, nodes[name], price=1.0 + place, others=others[name]) for place, name in enumerate(examples)
    )
    before, stored = logical_state(engine.columns), [*engine.columns.objects.of(ResourceSlice)]
    request = PlanRequest(Question.ADD_NODES, pods=tuple(pods), node_types=types, wants_bound=False)
    result = Planner(engine, lambda: ()).plan(request)
    assert logical_state(engine.columns) == before
    assert [*engine.columns.objects.of(ResourceSlice)] == stored
    return result


def counts(result: PlanResult) -> dict[str, int]:
    return {new_nodes.type: new_nodes.count for new_nodes in result.nodes_to_add}


def in_use(*devices: str) -> list[ApiObject]:
    """A pod on n1 with these devices of it."""
    held = claim("held", wants(count=len(devices)), has=given(*devices, pool="n1", node="n1"), used_by=["user"])
    user = claiming("user", "held")
    return [held, replace(user, spec=replace(user.spec, node_name="n1"))]


def one_each(count: int, *expressions: str, start: int = 0) -> tuple[list[ApiObject], list[Pod]]:
    """Claims for a device each, and their pods."""
    names = [f"c{number}" for number in range(start, start + count)]
    return [claim(name, wants("gpu", *expressions)) for name in names], [claiming(f"p-{name}", name) for name in names]


def partitioned(on: str) -> list[ApiObject]:
    """A card of 40Gi in two slices of one pool: the counters, and four partitions of 20Gi each."""
    cards = [device(f"part-{number}", consumes={"memory": "20Gi"}) for number in range(4)]
    return [
        slice_of(name=f"{on}-a", node=on, of=2, counters={"memory": "40Gi"}),
        slice_of(*cards, name=f"{on}-b", node=on, of=2),
    ]


@pytest.mark.parametrize(
    ("devices", "used", "pods", "nodes"),
    [
        pytest.param([gpus("n1", 2)], in_use("gpu-0", "gpu-1"), 5, 3, id="two devices on each new node"),
        pytest.param([gpus("n1", 2)], in_use("gpu-0"), 5, 2, id="the free device of the example is used first"),
        pytest.param([gpus("n1", 2)], [], 2, 0, id="all fit today"),
        pytest.param(partitioned("n1"), in_use("part-0", "part-1"), 3, 2, id="partitions of a card, in two slices"),
    ],
)
def test_devices(devices: list[ApiObject], used: list[ApiObject], pods: int, nodes: int) -> None:
    claims, asking = one_each(pods)
    result = added([device_class(), node("n1"), *devices, *used, *claims], asking, "n1")
    assert counts(result) == ({"n1": nodes} if nodes else {})
    assert result.pending == ()


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param([], id="no devices"),
        pytest.param(
            [slice_of(device("net-0"), pool="net", reached=node_selector(term("kubernetes.io/hostname In n1")))],
            id="devices that a selector of nodes reaches",
        ),
    ],
)
def test_a_new_node_without_devices_helps_no_pod(devices: list[ApiObject]) -> None:
    claims, asking = one_each(2)
    result = added([device_class(), node("n1"), *devices, *claims], asking, "n1")
    assert counts(result) == {}
    assert len(result.pending) == 2 - len(devices)


def test_pods_of_one_template_with_different_claims_need_different_nodes() -> None:
    nowhere, lost = one_each(1, 'device.attributes["gpu.example.com"].model == "unknown"')
    small, some = one_each(2, 'device.attributes["gpu.example.com"].model == "small"', start=1)
    large, others = one_each(3, 'device.attributes["gpu.example.com"].model == "large"', start=3)
    nodes: list[ApiObject] = [node("s"), node("l"), gpus("s", 2, model="small"), gpus("l", 1, model="large")]
    result = added([device_class(), *nodes, *nowhere, *small, *large], [*lost, *some, *others], "s", "l")
    assert counts(result) == {"l": 2}
    assert [pending_pod.pod for pending_pod in result.pending] == ["default/p-c0"]


def test_a_fix_adds_a_node_with_devices() -> None:
    claims, (asking,) = one_each(1)
    engine = engine_of(device_class(), node("n1"), gpus("n1", 1), *in_use("gpu-0"), *claims)
    result = Planner(engine, lambda: ()).plan(PlanRequest(Question.FIX, pods=(asking,)))
    assert ("add a node like n1",) in [fix.changes for fix in result.fixes]


def test_volume_limits() -> None:
    names = [f"v{number}" for number in range(5)]
    storage: list[ApiObject] = [
        view for name in names for view in (volume_claim(name, volume=name), persistent_volume(name, driver=DRIVER))
    ]
    objects: list[ApiObject] = [node("n1", unschedulable=True), csi_node("n1", **{DRIVER: 2}), *storage]
    result = added(objects, [pod(f"p-{name}", claims=[name]) for name in names], "n1")
    assert counts(result) == {"n1": 3}
    assert CSINode in {type(view) for view in cluster_objects_of_nodes(engine_of(*objects).columns, ["n1"])["n1"]}


def test_extended_resources_and_the_pods_of_daemon_sets() -> None:
    example = node("n1", cpu=4, others={"example.com/card": 3}, unschedulable=True)
    agent = pod("agent", cpu=2, owner=owned_by("DaemonSet", "agent"), on="n1")
    cards = [pod(f"c{number}", others={"example.com/card": 1}) for number in range(4)]
    assert counts(added([example], cards, "n1")) == {"n1": 2}
    cpus = [pod(f"p{number}", cpu=1) for number in range(4)]
    assert counts(added([example], cpus, "n1")) == {"n1": 1}
    assert counts(added([example, agent], cpus, "n1")) == {"n1": 2}
