"""Queueing hints: pods that NodeResourcesFit rejected."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.api.views.devices import DeviceClass, DeviceClassSpec
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.scheduler.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import node, pod
from tests.scheduler.config.builders import with_arguments
from tests.scheduler.harness import decide, engine_of
from tests.scheduler.queueing import Change, queues

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
def test_room_that_pods_leave(change: Change, is_queued: bool) -> None:
    assert queues(NodeResourcesFit, pod(cpu=1, others={GPU: 1}), **change) is is_queued


def test_what_a_silent_container_is_believed_to_use_is_not_requested() -> None:
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
def test_room_on_nodes(rejected: Pod, old: Node | None, new: Node, is_queued: bool) -> None:
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
def test_a_resource_that_a_device_class_stands_behind(
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
