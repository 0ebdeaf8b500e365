"""The history of a DaemonSet, in the API."""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION, DAEMON_SET
from mooring.controllers.revisions import revision_data, revision_hash
from tests.controllers.batch_builders import daemon_set, node
from tests.controllers.world import Story, World, play

CONTROLLERS = ["daemonset-controller"]
HASH = "controller-revision-hash"


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


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

    run_story(story)


def test_only_so_many_are_kept() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), daemon_set(revisionHistoryLimit=1))
        await world.settle(2)
        for number in range(2, 6):
            await set_image(world, f"app:{number}", revisionHistoryLimit=1)
        assert await revisions(world) == {"app:4": 4, "app:5": 5}

    run_story(story)


def test_a_name_that_is_taken_counts_as_a_collision() -> None:
    async def story(world: World) -> None:
        await world.create(daemon_set())
        hashed = revision_hash(revision_data(await world.get(DAEMON_SET, "agent")), None)
        taken: Document = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": f"agent-{hashed}"},
            "data": {"other": True},
            "revision": 1,
        }
        await world.create(taken, node("n1"))
        world.start_manager(CONTROLLERS)
        await world.settle(5)
        assert (await world.get(DAEMON_SET, "agent"))["status"]["collisionCount"] == 1
        (pod,) = await world.pods()
        assert pod["metadata"]["labels"][HASH] != hashed

    play(story, controllers=[])


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

    run_story(story)
