"""Ephemeral volumes, on virtual time."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, Kind
from mooring.client.interface import Client, Deletion
from tests.controllers.world import NAMESPACE, Story, World, play

SPEC: Document = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "volumeAttributesClassName": "gold",
}
TEMPLATE: Document = {"metadata": {"labels": {"of": "p"}, "annotations": {"note": "x"}}, "spec": SPEC}


def pod(name: str = "scratch", **source: Document) -> Document:
    volume = {"name": name, **(source or {"ephemeral": {"volumeClaimTemplate": TEMPLATE}})}
    spec = {"containers": [{"name": "c", "image": "a"}], "volumes": [{"name": "other", "emptyDir": {}}, volume]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Pending"}}


def run_story(story: Story) -> None:
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
        assert claim["spec"] == {**SPEC, "volumeMode": "Filesystem"}
        await world.client.delete(POD, NAMESPACE, "p", Deletion(grace_s=0))
        await world.settle()
        assert await names(world) == []

    run_story(story)


def test_a_claim_that_is_taken_away_is_made_again() -> None:
    async def story(world: World) -> None:
        await world.create(pod())
        await world.settle()
        await world.client.delete(PERSISTENT_VOLUME_CLAIM, NAMESPACE, "p-scratch", Deletion())
        await world.settle()
        assert await names(world) == ["p-scratch"]

    run_story(story)


def test_a_claim_of_that_name_with_another_owner_is_left_alone() -> None:
    async def story(world: World) -> None:
        other = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "p-scratch"}, "spec": SPEC}
        await world.create(other, pod())
        await world.settle()
        said = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
        assert await world.events() == [("p", "FailedBinding", f"ephemeral volume scratch: {said}")]
        (claim,) = await world.list(PERSISTENT_VOLUME_CLAIM)
        assert "ownerReferences" not in claim["metadata"]

    run_story(story)


def test_other_volumes_get_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(pod(persistentVolumeClaim={"claimName": "mine"}))
        await world.settle()
        assert await names(world) == []

    run_story(story)


class _Replacing:
    """Whoever reads a pod for the first time finds another one of that name."""

    def __init__(self, inner: Client, other: Document) -> None:
        self._inner = inner
        self._others = [other]

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def get(self, kind: Kind, namespace: str, name: str) -> bytes:
        if kind is POD and self._others:
            await self._inner.delete(kind, namespace, name, Deletion(grace_s=0))
            await self._inner.create(kind, namespace, self._others.pop())
        return await self._inner.get(kind, namespace, name)


@pytest.mark.parametrize(
    ("other", "claims"),
    [
        pytest.param(pod(emptyDir={}), [], id="whose volume of that name is none of ours"),
        pytest.param({**pod(), "spec": {"containers": [{"name": "c", "image": "a"}]}}, [], id="without volumes"),
        pytest.param(pod(name="cache", emptyDir={}), [], id="without a volume of that name"),
        pytest.param(pod(), ["p-scratch"], id="with the same volume, which gets its own claim"),
    ],
)
def test_a_pod_that_was_made_anew_is_not_taken_for_the_one_before(
    other: Document, claims: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        await world.create(pod())
        await world.settle()
        uid = (await world.get(POD, "p"))["metadata"]["uid"]
        made = await world.list(PERSISTENT_VOLUME_CLAIM)
        assert [(c["metadata"]["name"], c["metadata"]["ownerReferences"][0]["uid"]) for c in made] == [
            (name, uid) for name in claims
        ]
        assert await world.events() == []

    play(
        story,
        controllers=["ephemeral-volume-controller"],
        through=lambda client, clock: _Replacing(client, other),  # type: ignore[arg-type, return-value]
    )
    assert caplog.messages == []
