"""The DaemonSet controller and its revisions, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from mooring.controllers.revisions import revision_data, revision_hash
from tests.client.faulty import FaultyClient
from tests.controllers.batch_builders import daemon_set, node, storm_of
from tests.controllers.world import NAMESPACE, Story, World, play

CONTROLLERS = ["daemonset-controller"]


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


def node_of(pod: Document) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


async def nodes_served(world: World) -> list[str]:
    return sorted(node_of(pod) for pod in await world.pods())


async def counts(world: World) -> tuple[int, int, int, int]:
    status = (await world.get(DAEMON_SET, "agent"))["status"]
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    desired, current, ready, updated = (status.get(name, 0) for name in names)
    return desired, current, ready, updated


def test_a_pod_on_each_node_that_fits() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2", taints=["gpu:NoSchedule"]), node("n3"))
        await world.create(daemon_set())
        await world.settle(2)
        assert await nodes_served(world) == ["n1", "n3"]
        await world.create(node("n4"))
        await world.settle()
        assert await nodes_served(world) == ["n1", "n3", "n4"]
        await world.make_ready()
        await world.settle()
        assert await counts(world) == (3, 3, 3, 3)
        assert len(await world.events("SuccessfulCreate")) == 3
        for pod in await world.pods():
            metadata = pod["metadata"]
            await world.client.bind(NAMESPACE, metadata["name"], metadata["uid"], node_of(pod))
        await world.patch(NODE, "n3", {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
        await world.settle()
        staying = [node_of(pod) for pod in await world.pods() if not pod["metadata"].get("deletionTimestamp")]
        assert sorted(staying) == ["n1", "n4"]

    run_story(story)


def test_an_update_goes_node_by_node() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), daemon_set())
        await world.settle(2)
        await world.run_pods(2)
        await world.patch(DAEMON_SET, "agent", {"spec": daemon_set(image="app:2")["spec"]})
        await world.settle(2)
        assert (await counts(world))[3] == 1
        await world.run_pods(6)
        assert await counts(world) == (2, 2, 2, 2)
        assert {pod["spec"]["containers"][0]["image"] for pod in await world.pods()} == {"app:2"}
        assert sorted(each["revision"] for each in await world.list(CONTROLLER_REVISION)) == [1, 2]

    run_story(story)


def test_a_surging_update_waits_for_the_new_pod() -> None:
    async def story(world: World) -> None:
        update: Document = {"maxSurge": 1, "maxUnavailable": 0}
        await world.create(node("n1"), daemon_set(update=update))
        await world.settle(2)
        await world.run_pods(2)
        await world.patch(DAEMON_SET, "agent", {"spec": daemon_set(image="app:2", update=update)["spec"]})
        await world.settle(2)
        assert await nodes_served(world) == ["n1", "n1"]
        await world.run_pods(2)
        assert [pod["spec"]["containers"][0]["image"] for pod in await world.pods()] == ["app:2"]

    run_story(story)


def test_on_delete_nothing_happens_until_a_pod_is_deleted() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), daemon_set(strategy="OnDelete"))
        await world.settle(2)
        await world.run_pods(2)
        await world.patch(DAEMON_SET, "agent", {"spec": daemon_set(strategy="OnDelete", image="app:2")["spec"]})
        await world.settle(2)
        (pod,) = await world.pods()
        assert pod["spec"]["containers"][0]["image"] == "app:1"
        await world.delete(POD, pod["metadata"]["name"])
        await world.settle(2)
        assert [pod["spec"]["containers"][0]["image"] for pod in await world.pods()] == ["app:2"]

    run_story(story)


def test_failed_pods_are_replaced_ever_more_slowly() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), daemon_set())
        await world.settle(2)
        made = set()
        for _ in range(100):
            for pod in await world.pods():
                made.add(pod["metadata"]["name"])
                await world.patch(POD, pod["metadata"]["name"], {"status": {"phase": "Failed"}}, "status")
            await world.settle(0.5)
        assert 5 <= len(made) <= 8
        assert await world.events("FailedDaemonPod")

    run_story(story)


def test_a_selector_of_everything_is_refused() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), daemon_set(selector={}))
        await world.settle(2)
        assert await world.pods() == []
        message = "This daemon set is selecting all pods. A non-empty selector is required."
        assert await world.events() == [("agent", "SelectingAll", message)]

    run_story(story)


@pytest.mark.parametrize("seed", range(8))
def test_in_any_storm_each_node_has_its_pod_when_it_is_over(seed: int) -> None:
    storm = storm_of(seed)

    async def story(world: World) -> None:
        await world.create(*(node(f"n{number}") for number in range(6)), daemon_set())
        for image in ("app:2", "app:3"):
            await world.run_pods(5)
            await world.patch(DAEMON_SET, "agent", {"spec": daemon_set(image=image)["spec"]})
        await world.settle(900)
        await world.run_pods(30)
        await world.settle(900)
        await world.run_pods(5)
        assert await nodes_served(world) == [f"n{number}" for number in range(6)]
        assert await counts(world) == (6, 6, 6, 6)
        assert {pod["spec"]["containers"][0]["image"] for pod in await world.pods()} == {"app:3"}

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, storm), seed=seed)


# --- The history of a DaemonSet, in the API --------------------------------------------------------------------------


HASH = "controller-revision-hash"


def run_history(story: Story) -> None:
    play(story, controllers=["daemonset-controller"])


async def revisions(world: World) -> dict[str, int]:
    """By image."""
    found = await world.list(CONTROLLER_REVISION)
    return {each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: each["revision"] for each in found}


async def set_image(world: World, image: str, **spec: Any) -> None:
    await world.patch(DAEMON_SET, "agent", {"spec": daemon_set(image=image, **spec)["spec"]})
    await world.settle(2)
    await world.run_pods(3)


def test_going_back_makes_the_old_revision_the_newest() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), daemon_set())
        await world.settle(2)
        await set_image(world, "app:2")
        assert await revisions(world) == {"app:1": 1, "app:2": 2}
        await set_image(world, "app:1")
        assert await revisions(world) == {"app:1": 3, "app:2": 2}

    run_history(story)


def test_only_so_many_are_kept() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), daemon_set(revisionHistoryLimit=1))
        await world.settle(2)
        for number in range(2, 6):
            await set_image(world, f"app:{number}", revisionHistoryLimit=1)
        assert await revisions(world) == {"app:4": 4, "app:5": 5}

    run_history(story)


def test_a_name_that_is_taken_counts_as_a_collision() -> None:
    async def story(world: World) -> None:
        wanted = daemon_set()
        hashed = revision_hash(revision_data(wanted), None)
        taken: Document = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": f"agent-{hashed}"},
            "data": {"other": True},
            "revision": 1,
        }
        await world.create(taken, node("n1"), wanted)
        await world.settle(5)
        assert (await world.get(DAEMON_SET, "agent"))["status"]["collisionCount"] == 1
        (pod,) = await world.pods()
        assert pod["metadata"]["labels"][HASH] != hashed

    run_history(story)


def test_of_two_revisions_of_one_template_one_stays() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), daemon_set())
        await world.settle(2)
        (known,) = await world.list(CONTROLLER_REVISION)
        double = {
            **known,
            "metadata": {"name": "agent-double", "labels": {"app": "agent", HASH: "double"}},
            "revision": 9,
        }
        await world.create(double)
        await world.settle(3)
        assert [each["metadata"]["name"] for each in await world.list(CONTROLLER_REVISION)] == ["agent-double"]
        (pod,) = await world.pods()
        assert pod["metadata"]["labels"][HASH] == "double"

    run_history(story)
