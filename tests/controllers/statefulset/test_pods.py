"""Members corrected, and what is recorded when something fails."""

from __future__ import annotations

from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from tests.client.faulty import Fault, FaultyClient, Outcome, Script
from tests.controllers.batch_builders import CLAIM_SPEC, stateful_set
from tests.controllers.world import Story, World, play

CONTROLLERS = ["statefulset-controller"]


def run_story(story: Story, *faults: Fault) -> None:
    play(story, controllers=CONTROLLERS, through=lambda client, clock: FaultyClient(client, clock, Script(*faults)))


def test_a_member_gets_its_name_back() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1))
        await world.run_pods(2)
        await world.patch(POD, "db-0", {"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "other"}}})
        await world.settle(2)
        labels = (await world.get(POD, "db-0"))["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == "db-0"
        assert await world.events("SuccessfulUpdate") == [
            ("db", "SuccessfulUpdate", "Update Pod db-0 in StatefulSet db successful")
        ]

    run_story(story, Fault("update", Outcome.CONFLICT, kind=POD, times=2))


def test_failures_are_told() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1, claims=["data"]))
        await world.run_pods(3)
        failed = [message for _, _, message in await world.events("FailedCreate")]
        assert any(
            message.startswith("Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error:")
            for message in failed
        )
        assert any(message.startswith("Create Pod db-0 in StatefulSet db failed error:") for message in failed)
        assert [pod["metadata"]["name"] for pod in await world.pods()] == ["db-0"]
        await world.patch(STATEFUL_SET, "db", {"spec": {"replicas": 0}})
        await world.settle(3)
        (failure,) = await world.events("FailedDelete")
        assert failure[2].startswith("Delete Pod db-0 in StatefulSet db failed error:")
        assert await world.pods() == []

    run_story(
        story,
        Fault("create", Outcome.BROKEN, kind=PERSISTENT_VOLUME_CLAIM),
        Fault("create", Outcome.BROKEN, kind=POD),
        Fault("delete", Outcome.BROKEN, kind=POD),
    )


def test_a_claim_that_somebody_else_controls_is_given_up() -> None:
    async def story(world: World) -> None:
        other = {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "1", "controller": True}
        metadata = {"name": "data-db-0", "ownerReferences": [other]}
        await world.create(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": CLAIM_SPEC}
        )
        policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
        await world.create(stateful_set(replicas=1, claims=["data"], persistentVolumeClaimRetentionPolicy=policy))
        await world.run_pods(3)
        claim = await world.get(PERSISTENT_VOLUME_CLAIM, "data-db-0")
        assert claim["metadata"]["ownerReferences"] == [other]
        assert await world.events("ConflictingController")

    run_story(story)


def test_claims_of_a_waiting_member_are_made_again() -> None:
    async def story(world: World) -> None:
        await world.create(stateful_set(replicas=1, claims=["data"]))
        await world.settle(2)
        await world.patch(POD, "db-0", {"status": {"phase": "Pending"}}, "status")
        await world.delete(PERSISTENT_VOLUME_CLAIM, "data-db-0")
        await world.patch(POD, "db-0", {"metadata": {"annotations": {"look": "again"}}})
        await world.settle(2)
        assert (await world.get(PERSISTENT_VOLUME_CLAIM, "data-db-0"))["metadata"]["labels"] == {"app": "db"}

    run_story(story)
