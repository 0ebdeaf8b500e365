"""Deletion of pods that no kubelet deletes."""

from __future__ import annotations

import pytest

from mooring.api.kinds import NODE, POD
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from mooring.api.views.pod import Pod, PodSpec, PodStatus
from mooring.controllers.podgc import is_terminated, out_of_service, surplus, unscheduled
from mooring.controllers.settings import ControllerSettings
from tests.controllers.cluster_builders import heartbeat, node_document, pod_document
from tests.controllers.world import Story, World, play

CONTROLLERS = ["pod-garbage-collector-controller"]


def pod(
    name: str, phase: str = "Running", *, created: str = "2026-01-01T00:00:00Z", reason: str = "", on: str = ""
) -> Pod:
    metadata = ObjectMeta(name=name, creation_timestamp=created)
    return Pod(metadata=metadata, spec=PodSpec(node_name=on), status=PodStatus(phase=phase, reason=reason))


def pod_names(pods: list[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


TERMINATED = [
    pod("young", "Succeeded", created="2026-01-03T00:00:00Z"),
    pod("b-old", "Failed", created="2026-01-01T00:00:00Z"),
    pod("a-old", "Succeeded", created="2026-01-01T00:00:00Z"),
    pod("evicted", "Failed", created="2026-01-04T00:00:00Z", reason="Evicted"),
]


@pytest.mark.parametrize(
    ("threshold", "gone"),
    [
        pytest.param(4, [], id="no pod up to the threshold"),
        pytest.param(3, ["evicted"], id="evicted ones first"),
        pytest.param(1, ["evicted", "a-old", "b-old"], id="then the oldest, then by name"),
        pytest.param(0, [], id="no threshold: no pod"),
    ],
)
def test_terminated_pods_above_the_threshold(threshold: int, gone: list[str]) -> None:
    assert pod_names(surplus(TERMINATED, threshold)) == gone


@pytest.mark.parametrize(
    ("phase", "is_one"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True)],
)
def test_what_is_terminated(phase: str, is_one: bool) -> None:
    assert is_terminated(pod("p", phase)) is is_one


def node(ready: str, *taints: str) -> Node:
    return Node(
        spec=NodeSpec(taints=tuple(Taint(key=key, effect="NoExecute") for key in taints)),
        status=NodeStatus(conditions=(NodeCondition(type="Ready", status=ready),)),
    )


NODES = {
    "lost": node("Unknown", "node.kubernetes.io/out-of-service"),
    "back": node("True", "node.kubernetes.io/out-of-service"),
    "silent": node("Unknown"),
}


def test_pods_on_a_node_out_of_service_and_not_ready() -> None:
    pods = [pod(f"on-{name}", on=name) for name in (*NODES, "unheard-of", "")]
    assert pod_names(out_of_service(pods, NODES.get)) == ["on-lost"]


def test_pods_without_a_node() -> None:
    assert pod_names(unscheduled([pod("pending"), pod("placed", on="n1")])) == ["pending"]


def run_story(story: Story, settings: ControllerSettings | None = None) -> None:
    play(story, controllers=CONTROLLERS, settings=settings)


async def names(world: World) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in await world.pods())


def test_pods_of_a_node_that_is_gone_go_after_a_quarantine() -> None:
    async def story(world: World) -> None:
        held = pod_document("held", "n1")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(node_document("n1"), node_document("n2"))
        await world.create(pod_document("p1", "n1"), pod_document("p2", "n2"), held)
        await world.delete(NODE, "n1")
        await world.settle(55)
        assert await names(world) == ["held", "p1", "p2"]
        await world.settle(30)
        assert await names(world) == ["held", "p2"]
        assert (await world.get(POD, "held"))["status"]["phase"] == "Failed"
        assert (await world.conditions("held", POD))["DisruptionTarget"] == ("True", "DeletionByPodGC")

    run_story(story)


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    async def story(world: World) -> None:
        await world.create(pod_document("p1", "n1"))
        await world.settle(30)
        await world.create(node_document("n1"))
        await world.settle(100)
        assert await names(world) == ["p1"]

    run_story(story)


def test_terminated_pods_above_the_threshold_go() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"))
        for number in range(5):
            await world.create(pod_document(f"done{number}", "n1", phase="Succeeded"))
        await world.create(pod_document("alive", "n1"))
        await world.settle(25)
        assert await names(world) == ["alive", "done3", "done4"]

    run_story(story, ControllerSettings(terminated_pod_gc_threshold=2))


def test_a_pod_that_goes_without_a_node_is_helped() -> None:
    async def story(world: World) -> None:
        pod = pod_document("p")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(pod)
        await world.delete(POD, "p")
        await world.settle(25)
        assert (await world.get(POD, "p"))["status"]["phase"] == "Failed"

    run_story(story)


def test_pods_that_go_on_a_node_out_of_service_are_removed() -> None:
    async def story(world: World) -> None:
        pod = pod_document("p", "n1")
        pod["spec"]["terminationGracePeriodSeconds"] = 30
        await world.create(node_document("n1", taints=["node.kubernetes.io/out-of-service:NoExecute"]), pod)
        await heartbeat(world, "n1", "Unknown")
        await world.delete(POD, "p", grace_s=None)
        await world.settle(2)
        assert await names(world) == ["p"]
        await world.settle(20)
        assert await names(world) == []

    run_story(story)
