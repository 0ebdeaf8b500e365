"""The StatefulSet controller and its revisions, on virtual time."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from tests.client.faulty import FaultyClient
from tests.controllers.batch_builders import stateful_set, storm_of
from tests.controllers.world import Story, World, play

CONTROLLERS = ["statefulset-controller"]


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


async def names(world: World) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in await world.pods())


async def images(world: World) -> list[str]:
    pods = sorted(await world.pods(), key=lambda pod: str(pod["metadata"]["name"]))
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


async def status_of(world: World) -> Document:
    return dict((await world.get(STATEFUL_SET, "db"))["status"])


def test_members_come_in_order_and_go_in_reverse() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=3))
        for expected in (["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]):
            await world.settle()
            assert await names(world) == expected
            await world.make_ready()
        await world.settle()
        status = await status_of(world)
        assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 3, 3)
        await world.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await world.settle(2)
        assert await names(world) == ["db-0"]
        assert [message for _, _, message in await world.events("SuccessfulDelete")] == [
            "Delete Pod db-2 in StatefulSet db successful",
            "Delete Pod db-1 in StatefulSet db successful",
        ]

    run_story(story)


def test_parallel_members_come_at_once() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=20, podManagementPolicy="Parallel"))
        await world.settle()
        assert len(await world.pods()) == 20

    run_story(story)


def test_an_update_waits_for_each_member() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=3))
        await world.run_pods(5)
        await world.patch(STATEFUL_SET, "db", {"spec": stateful_set(replicas=3, image="app:2", partition=1)["spec"]})
        await world.settle(2)
        assert await images(world) == ["app:1", "app:1", "app:2"]
        await world.run_pods(5)
        assert await images(world) == ["app:1", "app:2", "app:2"]
        status = await status_of(world)
        assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 2)
        assert status["currentRevision"] != status["updateRevision"]
        await world.patch(STATEFUL_SET, "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await world.run_pods(5)
        assert await images(world) == ["app:2"] * 3
        status = await status_of(world)
        assert status["currentRevision"] == status["updateRevision"]

    run_story(story)


def test_claims_stay_when_members_go() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=2, claims=["data"]))
        await world.run_pods(4)
        await world.patch(STATEFUL_SET, "db", {"spec": {"replicas": 0}})
        await world.settle(3)
        assert await names(world) == []
        claims = await world.list(PERSISTENT_VOLUME_CLAIM)
        assert sorted(claim["metadata"]["name"] for claim in claims) == ["data-db-0", "data-db-1"]
        assert (
            "db",
            "SuccessfulCreate",
            "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        ) in await world.events()

    run_story(story)


def test_claims_go_with_their_owners_if_they_should() -> None:
    async def story(world: World) -> None:
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        wanted = stateful_set(replicas=2, claims=["data"], persistentVolumeClaimRetentionPolicy=policy)
        await world.create(wanted)
        await world.run_pods(4)
        assert {await owner_of(world, f"data-db-{ordinal}") for ordinal in (0, 1)} == {"StatefulSet/db"}
        for name in await names(world):
            await world.patch(POD, name, {"metadata": {"finalizers": ["test/stay"]}})
        await world.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}})
        await world.settle(2)
        assert await owner_of(world, "data-db-0") == "StatefulSet/db"
        assert await owner_of(world, "data-db-1") == "Pod/db-1"

    run_story(story)


async def owner_of(world: World, claim: str) -> str:
    (owner,) = (await world.get(PERSISTENT_VOLUME_CLAIM, claim))["metadata"]["ownerReferences"]
    return f"{owner['kind']}/{owner['name']}"


def test_a_failed_member_is_made_anew() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1))
        await world.run_pods(2)
        before = (await world.get(POD, "db-0"))["metadata"]["uid"]
        await world.patch(POD, "db-0", {"status": {"phase": "Failed"}}, "status")
        await world.settle(2)
        assert (await world.get(POD, "db-0"))["metadata"]["uid"] != before

    run_story(story)


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize("seed", range(5))
def test_in_any_storm_the_members_are_right_when_it_is_over(seed: int, policy: str) -> None:
    storm = storm_of(seed)

    async def story(world: World) -> None:
        parts: Document = {"podManagementPolicy": policy, "claims": ["data"]}
        await world.create(stateful_set(replicas=5, **parts))
        await world.run_pods(8)
        await world.patch(STATEFUL_SET, "db", {"spec": stateful_set(replicas=3, image="app:2", **parts)["spec"]})
        await world.run_pods(8)
        await world.patch(STATEFUL_SET, "db", {"spec": stateful_set(replicas=4, image="app:3", **parts)["spec"]})
        for _ in range(5):
            await world.settle(600)
            await world.run_pods(5)
        assert await names(world) == ["db-0", "db-1", "db-2", "db-3"]
        assert await images(world) == ["app:3"] * 4
        status = await status_of(world)
        assert (status["replicas"], status["updatedReplicas"], status["readyReplicas"]) == (4, 4, 4)

    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, storm), seed=seed)


# --- The history of a StatefulSet, in the API ------------------------------------------------------------------------


def run_history(story: Story) -> None:
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

    run_history(story)


def test_only_so_many_are_kept() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1, revisionHistoryLimit=1))
        await world.run_pods(2)
        for number in range(2, 6):
            await set_image(world, f"app:{number}", limit=1)
        assert await revisions(world) == {"app:4": 4, "app:5": 5}

    run_history(story)


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

    run_history(story)
