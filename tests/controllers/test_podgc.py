"""Stories of pods for which there is no kubelet."""

from __future__ import annotations

from mooring.api.kinds import NODE, POD
from mooring.controllers.settings import ControllerSettings
from tests.controllers.cluster_builders import heartbeat, node_document, pod_document
from tests.controllers.world import Story, World, play

CONTROLLERS = ["pod-garbage-collector-controller"]


def told(story: Story, settings: ControllerSettings | None = None) -> None:
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

    told(story)


def test_a_node_that_comes_back_keeps_its_pods() -> None:
    async def story(world: World) -> None:
        await world.create(pod_document("p1", "n1"))
        await world.settle(30)
        await world.create(node_document("n1"))
        await world.settle(100)
        assert await names(world) == ["p1"]

    told(story)


def test_terminated_pods_above_the_threshold_go() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"))
        for number in range(5):
            await world.create(pod_document(f"done{number}", "n1", phase="Succeeded"))
        await world.create(pod_document("alive", "n1"))
        await world.settle(25)
        assert await names(world) == ["alive", "done3", "done4"]

    told(story, ControllerSettings(terminated_pod_gc_threshold=2))


def test_a_pod_that_goes_without_a_node_is_helped() -> None:
    async def story(world: World) -> None:
        pod = pod_document("p")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(pod)
        await world.delete(POD, "p")
        await world.settle(25)
        assert (await world.get(POD, "p"))["status"]["phase"] == "Failed"

    told(story)


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

    told(story)
