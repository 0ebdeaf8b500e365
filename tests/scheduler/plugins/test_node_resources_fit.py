"""NodeResourcesFit: missing resources, pods that fit on no node, the scoring strategies. NodePorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.api.views.devices import DeviceClass, DeviceClassSpec
from mooring.api.views.meta import ApiObject, ObjectMeta
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.arrays import Int64s, Rows
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.catalogue import PLUGINS
from mooring.scheduler.config.types import NodeResourcesFitArgs
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.framework.registry import Registry
from mooring.scheduler.framework.status import Code
from mooring.scheduler.plugins.node_ports import NodePorts
from mooring.scheduler.plugins.node_resources_fit import FitFilterState, NodeResourcesFit
from tests.api.builders import container, sidecar
from tests.builders import node, pod
from tests.scheduler.config.builders import plugins, with_arguments, with_profile
from tests.scheduler.harness import decide, engine_of, rejected_by, scored_by, settle
from tests.scheduler.queueing import Change, queues

GPU, NIC = "example.com/gpu", "vendor.io/nic"
GI = 1 << 30


@pytest.mark.parametrize(
    ("cluster", "wanting", "reasons"),
    [
        pytest.param([node("n1", cpu=2)], pod(cpu=2), (), id="exactly what there is"),
        pytest.param([node("n1", cpu=2)], pod(cpu="2001m"), ("Insufficient cpu",), id="a little more"),
        pytest.param(
            [node("n1", cpu=2), pod("a", cpu="1500m", on="n1")], pod(cpu=1), ("Insufficient cpu",), id="less others"
        ),
        pytest.param([node("n1", pods=1), pod("a", on="n1")], pod(), ("Too many pods",), id="no more pods"),
        pytest.param(
            [node("n1", cpu=1, memory="1Gi", pods=0, others={"ephemeral-storage": "1Gi", GPU: 1})],
            pod(cpu=2, memory="2Gi", others={GPU: 2, NIC: 1, "ephemeral-storage": "2Gi"}),
            (
                "Too many pods",
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                f"Insufficient {GPU}",
                f"Insufficient {NIC}",
            ),
            id="everything that is short, in order",
        ),
        pytest.param([node("n1", cpu=0, memory=0)], pod(), (), id="a pod that requests nothing"),
        pytest.param(
            [node("n1", cpu=1), pod("a", cpu=2, on="n1")], pod(), (), id="which even fits an overcommitted node"
        ),
        pytest.param([node("n1")], pod(others={GPU: 0}), (), id="none of a resource that no node has"),
        pytest.param(
            [node("n1", cpu=3)],
            pod(containers=[container(cpu=1)], init=[container(cpu=3), sidecar(cpu=1)]),
            (),
            id="init containers run one after the other",
        ),
        pytest.param(
            [node("n1", cpu=3)],
            pod(containers=[container(cpu=1)], init=[sidecar(cpu=1), container(cpu=3)]),
            ("Insufficient cpu",),
            id="beside the sidecars before them",
        ),
        pytest.param(
            [node("n1", others={"hugepages-2Mi": "4Mi"})],
            pod(others={"hugepages-2Mi": "6Mi"}),
            ("Insufficient hugepages-2Mi",),
            id="huge pages",
        ),
    ],
)
def test_what_is_short(cluster: list[ApiObject], wanting: Pod, reasons: tuple[str, ...]) -> None:
    assert rejected_by(engine_of(*cluster), NodeResourcesFit, wanting) == ({"n1": reasons} if reasons else {})


@pytest.mark.parametrize(
    ("cluster", "wanting", "code"),
    [
        pytest.param(
            [node("n1", cpu=2), pod("a", cpu=1, on="n1")], pod(cpu=2), Code.UNSCHEDULABLE, id="somebody could leave"
        ),
        pytest.param([node("n1", cpu=2)], pod(cpu=3), Code.UNRESOLVABLE, id="too small even if empty"),
        pytest.param([node("n1")], pod(others={GPU: 1}), Code.UNRESOLVABLE, id="a resource that the node lacks"),
        pytest.param([node("n1", pods=0)], pod(), Code.UNSCHEDULABLE, id="the number of pods is never for good"),
        pytest.param(
            [node("n1", cpu=2, memory="2Gi"), pod("a", cpu=1, on="n1")],
            pod(cpu=2, memory="3Gi"),
            Code.UNRESOLVABLE,
            id="one resource is enough",
        ),
    ],
)
def test_whether_evicting_could_help(cluster: list[ApiObject], wanting: Pod, code: Code) -> None:
    status = decide(engine_of(*cluster), wanting).node_to_status["n1"]
    assert status is not None
    assert status.code is code


@pytest.mark.parametrize(
    ("arguments", "reasons"),
    [
        ({}, (f"Insufficient {GPU}", f"Insufficient {NIC}")),
        ({"ignoredResources": [GPU]}, (f"Insufficient {NIC}",)),
        ({"ignoredResourceGroups": ["vendor.io"]}, (f"Insufficient {GPU}",)),
    ],
    ids=["nothing", "a resource", "a group of resources"],
)
def test_resources_that_are_ignored(arguments: dict[str, Any], reasons: tuple[str, ...]) -> None:
    engine = engine_of(node("n1"), config=with_arguments("NodeResourcesFit", arguments))
    assert rejected_by(engine, NodeResourcesFit, pod(others={GPU: 1, NIC: 1})) == {"n1": reasons}


def strategy(kind: str, *resources: tuple[str, int], signature: list[tuple[int, int]] | None = None) -> dict[str, Any]:
    written: dict[str, Any] = {"type": kind}
    if resources:
        written["resources"] = [{"name": name, "weight": weight} for name, weight in resources]
    if signature is not None:
        points = [{"utilization": utilization, "score": score} for utilization, score in signature]
        written["requestedToCapacityRatio"] = {"shape": points}
    return with_arguments("NodeResourcesFit", {"scoringStrategy": written})


CLUSTER = (node("half", cpu=4, memory="4Gi"), node("empty", cpu=4, memory="4Gi", others={GPU: 4}))
HALF = pod("a", cpu=2, memory="2Gi", on="half")


@pytest.mark.parametrize(
    ("config", "wanting", "scores"),
    [
        pytest.param(None, pod(cpu=1, memory="1Gi"), {"half": 25, "empty": 75}, id="the emptier the better"),
        pytest.param(None, pod(cpu=1, memory="3Gi"), {"half": 12, "empty": 50}, id="0 where it does not fit"),
        pytest.param(None, pod(), {"half": 46, "empty": 96}, id="silent containers count for a little"),
        pytest.param(
            strategy("MostAllocated"), pod(cpu=1, memory="1Gi"), {"half": 75, "empty": 25}, id="the fuller the better"
        ),
        pytest.param(
            strategy("LeastAllocated", ("cpu", 3), ("memory", 1)),
            pod(cpu=2, memory=0),
            {"half": 12, "empty": 62},
            id="weights",
        ),
        pytest.param(
            strategy("LeastAllocated", ("cpu", 1), (GPU, 1)),
            pod(cpu=2, others={GPU: 1}),
            {"half": 0, "empty": 62},
            id="a resource that a node lacks is left out there",
        ),
        pytest.param(
            strategy("LeastAllocated", ("cpu", 1), (GPU, 1)),
            pod(cpu=2),
            {"half": 0, "empty": 50},
            id="a special one that the pod does not request is left out everywhere",
        ),
        pytest.param(
            strategy("LeastAllocated", (GPU, 1)), pod(), {"half": 0, "empty": 0}, id="and nothing may be left"
        ),
        pytest.param(
            strategy("RequestedToCapacityRatio", signature=[(0, 0), (100, 10)]),
            pod(cpu=1, memory="1Gi"),
            {"half": 75, "empty": 25},
            id="by a shape",
        ),
        pytest.param(
            strategy("RequestedToCapacityRatio", signature=[(0, 10), (50, 0), (100, 10)]),
            pod(cpu=1, memory="1Gi"),
            {"half": 50, "empty": 50},
            id="by a broken line",
        ),
    ],
)
def test_scores(config: dict[str, Any] | None, wanting: Pod, scores: dict[str, int]) -> None:
    assert scored_by(engine_of(*CLUSTER, HALF, config=config), NodeResourcesFit, wanting) == scores


def test_more_resources_than_can_be_distinguished() -> None:
    many = {f"example.com/r{number}": 1 for number in range(80)}
    decision = decide(engine_of(node("n1", others=many)), pod(others=many))
    assert decision.status is not None
    assert decision.status.message == "pod requests 80 different resources, more than the filter can distinguish"


class FitWhereOpen(NodeResourcesFit):
    """A user's subclass that overrides `filter` alone: it also reads a label of the node."""

    name = "FitWhereOpen"

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns, NodeResourcesFitArgs())
        self._open = columns.labels.column("open")

    def filter(self, state: FitFilterState, rows: Rows) -> Int64s:
        is_closed = self._open.codes[rows] != (self._open.code_for("yes") or -1)
        bits: Int64s = np.maximum(super().filter(state, rows), is_closed)
        return bits


def test_a_subclass_that_overrides_filter_is_called_for_single_rows_too() -> None:
    config = with_profile(plugins={"multiPoint": {"enabled": plugins("FitWhereOpen")}})
    nodes = [node("n1", cpu=4, labels={"open": "yes"}), node("n2", cpu=4, labels={"open": "no"})]
    engine = engine_of(*nodes, config=config, registry=Registry([*PLUGINS, FitWhereOpen]))
    assert engine.decide(engine.record(pod(cpu=1))).node_name == "n1"
    engine.put(pod("a", cpu=1, on="n1"))
    engine.put(pod("b", cpu=1, on="n2"))
    assert engine.decide(engine.record(pod(cpu=1))).feasible_count == 1


GPU = "example.com/gpu"


def device_class(name: str, behind: str | None = None) -> DeviceClass:
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(extended_resource_name=behind))


@pytest.mark.parametrize(
    ("change", "is_queued"),
    [
        pytest.param({"gone": pod("q", on="n1")}, True, id="any pod with a node is gone"),
        pytest.param({"gone": pod("q", nominated="n1")}, True, id="one with a promise is gone"),
        pytest.param({"gone": pod("q", cpu=1)}, False, id="one without either is gone"),
        pytest.param({"before": pod("q", cpu=2, on="n1"), "after": pod("q", cpu=1, on="n1")}, True, id="less cpu"),
        pytest.param(
            {"before": pod("q", cpu=1, on="n1"), "after": pod("q", on="n1")}, True, id="no cpu any more at all"
        ),
        pytest.param(
            {"before": pod("q", memory=2, on="n1"), "after": pod("q", memory=1, on="n1")}, False, id="less memory"
        ),
        pytest.param(
            {"before": pod("q", others={GPU: 2}, on="n1"), "after": pod("q", others={GPU: 1}, on="n1")},
            True,
            id="less of an extended resource",
        ),
        pytest.param({"before": pod("q", cpu=2), "after": pod("q", cpu=1)}, False, id="another pending pod shrinks"),
        pytest.param({"before": pod(cpu=2), "after": pod(cpu=1, others={GPU: 1})}, True, id="it shrinks itself"),
        pytest.param({"came": pod("q", on="n1")}, False, id="a pod came"),
    ],
)
def test_resources_that_pods_leave(change: Change, is_queued: bool) -> None:
    assert queues(NodeResourcesFit, pod(cpu=1, others={GPU: 1}), **change) is is_queued


def test_non_zero_defaults_are_not_requested() -> None:
    before, after = pod("q", cpu=1, on="n1"), pod("q", cpu="500m", on="n1")
    assert not queues(NodeResourcesFit, pod(memory=1), before=before, after=after)


ASLEEP = pod(cpu=2, memory="1Gi", others={GPU: 1})


@pytest.mark.parametrize(
    ("rejected", "old", "new", "is_queued"),
    [
        pytest.param(ASLEEP, None, node(others={GPU: 1}), True, id="a node came that is large enough"),
        pytest.param(ASLEEP, None, node(cpu=1, others={GPU: 1}), False, id="one that is too small"),
        pytest.param(ASLEEP, None, node(), False, id="one that lacks a resource"),
        pytest.param(pod(), None, node(pods=0), False, id="one that takes no pods"),
        pytest.param(pod(), None, node(cpu=0), True, id="a pod that requests nothing needs only a place"),
        pytest.param(
            ASLEEP, node(cpu=2, others={GPU: 1}), node(cpu=3, others={GPU: 1}), True, id="a node offers more cpu"
        ),
        pytest.param(
            ASLEEP, node(cpu=3, others={GPU: 1}), node(cpu=2, others={GPU: 1}), False, id="a node offers less of it"
        ),
        pytest.param(ASLEEP, node(), node(others={GPU: 1}), True, id="a node offers a resource that it lacked"),
        pytest.param(ASLEEP, node(cpu=1), node(cpu=1, others={GPU: 1}), False, id="but is too small"),
        pytest.param(
            pod(cpu=1),
            node(memory="8Gi"),
            node(memory="9Gi"),
            False,
            id="a node offers more of what it does not request",
        ),
        pytest.param(pod(cpu=1), node(pods=1), node(pods=2), True, id="a node takes more pods"),
        pytest.param(pod(), node(cpu=1), node(cpu=2), False, id="a pod that requests nothing"),
        pytest.param(
            replace(ASLEEP, spec=replace(ASLEEP.spec, overhead={"cpu": "1"})),
            None,
            node(cpu="2500m", others={GPU: 1}),
            False,
            id="overhead counts",
        ),
        pytest.param(pod(cpu=1), node(), node(zone="a"), False, id="labels do not help"),
        pytest.param(pod(cpu=9), node(), node(taints=["a:NoSchedule"]), True, id="taints wake everybody"),
    ],
)
def test_resources_on_nodes(rejected: Pod, old: Node | None, new: Node, is_queued: bool) -> None:
    assert queues(NodeResourcesFit, rejected, before=old, after=new) is is_queued


def test_resources_that_the_profile_ignores_are_not_ignored_here() -> None:
    """kube-scheduler sleeps through a node that would do, and so do we."""
    ignoring = with_arguments("NodeResourcesFit", {"ignoredResources": [GPU]})
    rejected = pod(cpu=2, others={GPU: 1})
    assert decide(engine_of(node(), config=ignoring), rejected).is_placed
    assert not queues(NodeResourcesFit, rejected, came=node(), config=ignoring)


@pytest.mark.parametrize(
    ("known", "old", "new", "is_queued"),
    [
        pytest.param(device_class("gpus", GPU), None, node(), True, id="a node without the resource came"),
        pytest.param(device_class("gpus", GPU), None, node(cpu=1), False, id="one that is too small"),
        pytest.param(device_class("others"), None, node(), False, id="another class is behind nothing"),
        pytest.param(device_class("gpus", GPU), node(), node(memory="9Gi"), True, id="any change of such a node"),
        pytest.param(
            device_class("gpus", GPU),
            node(others={GPU: 2}),
            node(others={GPU: 1}),
            False,
            id="a node that offers the resource itself",
        ),
    ],
)
def test_a_resource_that_a_device_class_provides(
    known: DeviceClass, old: Node | None, new: Node, is_queued: bool
) -> None:
    assert queues(NodeResourcesFit, pod(cpu=2, others={GPU: 1}), known, before=old, after=new) is is_queued


@pytest.mark.parametrize(
    ("old", "new", "is_queued"),
    [
        pytest.param(None, device_class("gpus", GPU), True, id="came"),
        pytest.param(None, device_class("tpus", "example.com/tpu"), False, id="came, behind another resource"),
        pytest.param(None, device_class("fast"), True, id="came, with the name that is requested"),
        pytest.param(None, device_class("slow"), False, id="came, with another name"),
        pytest.param(device_class("gpus"), device_class("gpus", GPU), True, id="stands behind it now"),
        pytest.param(device_class("gpus", GPU), device_class("gpus", GPU), False, id="stood behind it before"),
        pytest.param(device_class("gpus", GPU), device_class("gpus"), False, id="does no longer"),
        pytest.param(device_class("fast"), device_class("fast", "example.com/tpu"), False, id="its name never changes"),
    ],
)
def test_a_device_class(old: DeviceClass | None, new: DeviceClass, is_queued: bool) -> None:
    rejected = pod(others={GPU: 1, "deviceclass.resource.kubernetes.io/fast": 1})
    assert queues(NodeResourcesFit, rejected, before=old, after=new) is is_queued


# --- NodePorts: a host port belongs to one pod of a node. (Which ports conflict is reported in cache/test_ports.) ----


TEXT = ("node(s) didn't have free ports for the requested pod ports",)


@pytest.mark.parametrize(
    ("wanting", "rejecting"),
    [
        (pod(ports=["80"]), ["web"]),
        (pod(ports=["53/UDP"]), ["dns"]),
        (pod(ports=["443", "80"]), ["web"]),
        (pod(ports=["10.0.0.2:80"]), []),
        (pod(ports=["8080"]), []),
    ],
)
def test_nodes_where_the_port_is_taken(wanting: Pod, rejecting: list[str]) -> None:
    engine = engine_of(
        node("free"),
        node("web"),
        node("dns"),
        pod("web", ports=["10.0.0.1:80"], on="web"),
        pod("dns", ports=["53/UDP"], on="dns"),
    )
    assert rejected_by(engine, NodePorts, wanting) == dict.fromkeys(rejecting, TEXT)


def test_pods_without_host_ports_are_none_of_its_business() -> None:
    assert rejected_by(engine_of(node("n1")), NodePorts, pod()) is SKIP


def test_each_node_serves_one_pod_of_a_port() -> None:
    engine = engine_of(node("n1"), node("n2"))
    assert sorted(map(str, settle(engine, *(pod(name, ports=["80"]) for name in "abc")))) == ["None", "n1", "n2"]
