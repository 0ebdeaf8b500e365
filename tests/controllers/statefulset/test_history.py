"""The history of a StatefulSet, in the API."""

from __future__ import annotations

from mooring.api.kinds import CONTROLLER_REVISION, STATEFUL_SET
from tests.controllers.batch_builders import stateful_set
from tests.controllers.world import Story, World, play


def run_story(story: Story) -> None:
    play(story, controllers=["statefulset-controller"])


async def revisions(world: World) -> dict[str, int]:
    """By image."""
    found = await world.list(CONTROLLER_REVISION)
    return {each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: each["revision"] for each in found}


async def set_image(world: World, image: str, limit: int) -> None:
    spec = stateful_set(replicas=1, image=image, revisionHistoryLimit=limit)["spec"]
    await world.patch(STATEFUL_SET, "db", {"spec": spec})
    await world.run_pods(4)


def test_going_back_makes_the_old_revision_the_newest() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1))
        await world.run_pods(2)
        await set_image(world, "app:2", limit=10)
        await set_image(world, "app:1", limit=10)
        assert await revisions(world) == {"app:1": 3, "app:2": 2}

    run_story(story)


def test_only_so_many_are_kept() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1, revisionHistoryLimit=1))
        await world.run_pods(2)
        for number in range(2, 6):
            await set_image(world, f"app:{number}", limit=1)
        assert await revisions(world) == {"app:4": 4, "app:5": 5}

    run_story(story)


def test_revisions_without_an_owner_are_adopted() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1))
        await world.run_pods(2)
        (known,) = await world.list(CONTROLLER_REVISION)
        name = known["metadata"]["name"]
        await world.patch(CONTROLLER_REVISION, name, {"metadata": {"ownerReferences": []}})
        await world.patch(STATEFUL_SET, "db", {"metadata": {"annotations": {"look": "again"}}})
        await world.settle(2)
        (owner,) = (await world.get(CONTROLLER_REVISION, name))["metadata"]["ownerReferences"]
        assert owner["name"] == "db"

    run_story(story)
