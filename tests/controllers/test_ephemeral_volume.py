"""Stories of volumes that come and go with a pod."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, POD
from mooring.client.promise import Deletion
from tests.controllers.world import NAMESPACE, Story, World, play

SPEC: Document = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "volumeAttributesClassName": "gold",
}
TEMPLATE: Document = {"metadata": {"labels": {"of": "p"}, "annotations": {"note": "x"}}, "spec": SPEC}


def pod(**source: Document) -> Document:
    volume = {"name": "scratch", **(source or {"ephemeral": {"volumeClaimTemplate": TEMPLATE}})}
    spec = {"containers": [{"name": "c", "image": "a"}], "volumes": [{"name": "other", "emptyDir": {}}, volume]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Pending"}}


def tell(story: Story) -> None:
    play(story, controllers=["ephemeral-volume-controller", "garbage-collector-controller"])


async def names(world: World) -> list[str]:
    return [claim["metadata"]["name"] for claim in await world.list(PERSISTENT_VOLUME_CLAIM)]


def test_a_pod_gets_the_claim_of_its_template_which_goes_with_it() -> None:
    async def story(world: World) -> None:
        await world.create(pod())
        await world.settle()
        (claim,) = await world.list(PERSISTENT_VOLUME_CLAIM)
        metadata, (owner,) = claim["metadata"], claim["metadata"]["ownerReferences"]
        assert (metadata["name"], metadata["labels"], metadata["annotations"]) == (
            "p-scratch",
            {"of": "p"},
            {"note": "x"},
        )
        assert owner == {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": (await world.get(POD, "p"))["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        assert claim["spec"] == SPEC
        await world.client.delete(POD, NAMESPACE, "p", Deletion(grace_s=0))
        await world.settle()
        assert await names(world) == []

    tell(story)


def test_a_claim_that_is_taken_away_is_made_again() -> None:
    async def story(world: World) -> None:
        await world.create(pod())
        await world.settle()
        await world.client.delete(PERSISTENT_VOLUME_CLAIM, NAMESPACE, "p-scratch", Deletion())
        await world.settle()
        assert await names(world) == ["p-scratch"]

    tell(story)


def test_somebody_elses_claim_of_that_name_is_left_alone() -> None:
    async def story(world: World) -> None:
        other = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "p-scratch"}, "spec": SPEC}
        await world.create(other, pod())
        await world.settle()
        said = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
        assert await world.events() == [("p", "FailedBinding", f"ephemeral volume scratch: {said}")]
        (claim,) = await world.list(PERSISTENT_VOLUME_CLAIM)
        assert "ownerReferences" not in claim["metadata"]

    tell(story)


def test_other_volumes_get_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(pod(persistentVolumeClaim={"claimName": "mine"}))
        await world.settle()
        assert await names(world) == []

    tell(story)
