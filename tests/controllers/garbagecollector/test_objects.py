"""What the garbage collector asks of the API."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP
from mooring.api.views.definitions import CustomResourceDefinition
from mooring.client.cache.informer import Informer
from mooring.client.errors import ConflictError, NotFoundError
from mooring.client.interface import Propagation
from mooring.controllers.garbagecollector.graph import Identity
from mooring.controllers.garbagecollector.objects import GarbageObjects, StrayReference, UnknownKind
from mooring.controllers.served_kinds import ServedKinds
from tests.controllers.cluster_builders import config_map
from tests.controllers.world import NAMESPACE, World, play

OWNERS = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name.upper()} for name in ("a", "b")]


def objects(world: World) -> GarbageObjects:
    definitions: Informer[CustomResourceDefinition] = Informer("definitions")
    return GarbageObjects(world.client, world.clock, ServedKinds("test", definitions))


async def created(world: World, *, finalizers: tuple[str, ...] = ()) -> Identity:
    await world.create(config_map("x", *OWNERS, finalizers=finalizers))
    uid = (await world.get(CONFIG_MAP, "x"))["metadata"]["uid"]
    return Identity("ConfigMap", "v1", NAMESPACE, "x", uid)


@pytest.mark.parametrize(
    ("identity", "error"),
    [
        pytest.param(Identity("Unheard", "v1", "ns", "x", "U"), UnknownKind, id="a kind that is not served"),
        pytest.param(Identity("ConfigMap", "v1", "", "x", "U"), StrayReference, id="in no namespace, but has one"),
    ],
)
def test_identities_that_cannot_be_asked_for(identity: Identity, error: type[Exception]) -> None:
    async def story(world: World) -> None:
        with pytest.raises(error):
            objects(world).place(identity)

    play(story, controllers=[])


def test_references_are_taken_away_one_by_one() -> None:
    async def story(world: World) -> None:
        identity = await created(world)
        await objects(world).remove_owners(identity, ["A", "nobody"])
        found = (await world.get(CONFIG_MAP, "x"))["metadata"]["ownerReferences"]
        assert [owner["name"] for owner in found] == ["b"]

    play(story, controllers=[])


def test_an_object_that_changed_otherwise_is_deleted_all_the_same() -> None:
    async def story(world: World) -> None:
        identity = await created(world)
        seen = await objects(world).metadata(identity)
        await world.patch(CONFIG_MAP, "x", {"data": {"k": "v"}})
        await objects(world).delete(identity, seen, Propagation.BACKGROUND)
        with pytest.raises(NotFoundError):
            await world.get(CONFIG_MAP, "x")

    play(story, controllers=[])


def test_an_object_with_another_owner_by_now_is_not_deleted() -> None:
    async def story(world: World) -> None:
        identity = await created(world)
        seen = await objects(world).metadata(identity)
        await world.patch(CONFIG_MAP, "x", {"metadata": {"ownerReferences": OWNERS[:1]}})
        with pytest.raises(ConflictError):
            await objects(world).delete(identity, seen, Propagation.BACKGROUND)

    play(story, controllers=[])


def test_only_the_named_finalizer_is_taken_away() -> None:
    async def story(world: World) -> None:
        identity = await created(world, finalizers=("orphan", "mine"))
        await objects(world).remove_finalizer(identity, "orphan")
        await objects(world).remove_finalizer(identity, "orphan")
        assert (await world.get(CONFIG_MAP, "x"))["metadata"]["finalizers"] == ["mine"]

    play(story, controllers=[])


def test_references_that_block_are_made_loose() -> None:
    async def story(world: World) -> None:
        blocking = [owner | {"blockOwnerDeletion": True} for owner in OWNERS]
        await world.create(config_map("x", *blocking))
        uid = (await world.get(CONFIG_MAP, "x"))["metadata"]["uid"]
        await objects(world).unblock_owners(Identity("ConfigMap", "v1", NAMESPACE, "x", uid))
        found = (await world.get(CONFIG_MAP, "x"))["metadata"]["ownerReferences"]
        assert [owner["blockOwnerDeletion"] for owner in found] == [False, False]

    play(story, controllers=[])
