"""Deleted owners and their dependents, on virtual time."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NODE
from mooring.api.views.administration import CustomResourceDefinition
from mooring.client.errors import ConflictError, NotFoundError
from mooring.client.informer import Informer
from mooring.client.interface import Deletion, Propagation
from mooring.controllers.garbagecollector.controller import GarbageClient, InvalidOwnerReference, UnknownKind
from mooring.controllers.garbagecollector.graph import ObjectIdentity
from mooring.controllers.served_kinds import ServedKinds
from tests.controllers.cluster_builders import WIDGET, config_map, definition, node_document, owner_of
from tests.controllers.world import NAMESPACE, Story, World, play

OWNERS = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name.upper()} for name in ("a", "b")]
CONTROLLERS = ["garbage-collector-controller"]
ABSENT: Document = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0-0-0"}


def objects(world: World) -> GarbageClient:
    definitions: Informer[CustomResourceDefinition] = Informer("definitions")
    return GarbageClient(world.client, world.clock, ServedKinds("test", definitions))


async def created(world: World, *, finalizers: tuple[str, ...] = ()) -> ObjectIdentity:
    await world.create(config_map("x", *OWNERS, finalizers=finalizers))
    uid = (await world.get(CONFIG_MAP, "x"))["metadata"]["uid"]
    return ObjectIdentity("ConfigMap", "v1", NAMESPACE, "x", uid)


@pytest.mark.parametrize(
    ("identity", "error"),
    [
        pytest.param(ObjectIdentity("Unheard", "v1", "ns", "x", "U"), UnknownKind, id="a kind that is not served"),
        pytest.param(
            ObjectIdentity("ConfigMap", "v1", "", "x", "U"), InvalidOwnerReference, id="in no namespace, but has one"
        ),
    ],
)
def test_identities_that_cannot_be_located(identity: ObjectIdentity, error: type[Exception]) -> None:
    async def story(world: World) -> None:
        with pytest.raises(error):
            objects(world).locate(identity)

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
        identity = await created(world, finalizers=("orphan", "example.com/mine"))
        await objects(world).remove_finalizer(identity, "orphan")
        await objects(world).remove_finalizer(identity, "orphan")
        assert (await world.get(CONFIG_MAP, "x"))["metadata"]["finalizers"] == ["example.com/mine"]

    play(story, controllers=[])


def test_references_that_block_are_made_loose() -> None:
    async def story(world: World) -> None:
        blocking = [owner | {"blockOwnerDeletion": True} for owner in OWNERS]
        await world.create(config_map("x", *blocking))
        uid = (await world.get(CONFIG_MAP, "x"))["metadata"]["uid"]
        await objects(world).unblock_owners(ObjectIdentity("ConfigMap", "v1", NAMESPACE, "x", uid))
        found = (await world.get(CONFIG_MAP, "x"))["metadata"]["ownerReferences"]
        assert [owner["blockOwnerDeletion"] for owner in found] == [False, False]

    play(story, controllers=[])


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


async def delete(world: World, name: str, propagation: Propagation = Propagation.BACKGROUND) -> None:
    await world.client.delete(CONFIG_MAP, NAMESPACE, name, Deletion(propagation=propagation))
    await world.settle()


async def names(world: World) -> list[str]:
    """Names, with those that are going in brackets."""
    found = [each["metadata"] for each in await world.list(CONFIG_MAP)]
    return sorted(f"({each['name']})" if "deletionTimestamp" in each else each["name"] for each in found)


async def release(world: World, name: str) -> None:
    await world.patch(CONFIG_MAP, name, {"metadata": {"finalizers": None}})
    await world.settle()


async def owners(world: World, name: str) -> list[str]:
    return [owner["name"] for owner in (await world.get(CONFIG_MAP, name))["metadata"].get("ownerReferences") or []]


def test_in_the_background_dependents_follow_their_owner() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("own"))
        await world.create(config_map("child", await owner_of(world, "own")), config_map("stranger"))
        await world.create(config_map("grandchild", await owner_of(world, "child")))
        await world.settle()
        await delete(world, "own")
        assert await names(world) == ["stranger"]

    run_story(story)


def test_in_the_foreground_the_owner_waits_for_those_that_block() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("own"))
        blocks, loose = await owner_of(world, "own", blocks=True), await owner_of(world, "own")
        await world.create(config_map("blocks", blocks, finalizers=["example.com/hold"]))
        await world.create(config_map("loose", loose, finalizers=["example.com/hold"]))
        await world.settle()
        await delete(world, "own", Propagation.FOREGROUND)
        assert await names(world) == ["(blocks)", "(loose)", "(own)"]
        await release(world, "blocks")
        assert await names(world) == ["(loose)"]
        await release(world, "loose")
        assert await names(world) == []

    run_story(story)


def test_a_chain_goes_in_the_foreground_from_its_end() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"))
        await world.create(config_map("b", await owner_of(world, "a", blocks=True)))
        await world.create(config_map("c", await owner_of(world, "b", blocks=True), finalizers=["example.com/hold"]))
        await world.settle()
        await delete(world, "a", Propagation.FOREGROUND)
        assert await names(world) == ["(a)", "(b)", "(c)"]
        await release(world, "c")
        assert await names(world) == []

    run_story(story)


def test_orphans_stay_and_lose_the_reference() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("own"), config_map("other"))
        both = [await owner_of(world, "own"), await owner_of(world, "other")]
        await world.create(config_map("x", both[0]), config_map("y", *both))
        await world.settle()
        await delete(world, "own", Propagation.ORPHAN)
        assert await names(world) == ["other", "x", "y"]
        assert (await owners(world, "x"), await owners(world, "y")) == ([], ["other"])

    run_story(story)


def test_a_dependent_of_two_owners_goes_with_the_last() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"), config_map("b"))
        await world.create(config_map("child", await owner_of(world, "a"), await owner_of(world, "b")))
        await world.settle()
        await delete(world, "a")
        assert await owners(world, "child") == ["b"]
        await delete(world, "b")
        assert await names(world) == []

    run_story(story)


def test_an_owner_that_waits_gives_way_to_one_that_stays() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("a"), config_map("b"))
        both = [await owner_of(world, name, blocks=True) for name in ("a", "b")]
        await world.create(config_map("child", *both))
        await world.settle()
        await delete(world, "a", Propagation.FOREGROUND)
        assert await names(world) == ["b", "child"]
        assert await owners(world, "child") == ["b"]

    run_story(story)


@pytest.mark.parametrize(
    ("reference", "stays"),
    [
        pytest.param(ABSENT, False, id="an owner that never was"),
        pytest.param(ABSENT | {"kind": "Node"}, False, id="an owner of the cluster that never was"),
        pytest.param(ABSENT | {"name": "real"}, False, id="a namesake with another uid"),
        pytest.param(
            ABSENT | {"kind": "Unheard", "apiVersion": "x.example.com/v1"}, True, id="a kind that is not served"
        ),
    ],
)
def test_owners_that_do_not_exist(reference: Document, stays: bool) -> None:
    async def story(world: World) -> None:
        await world.create(config_map("real"), config_map("x", reference))
        await world.settle(3)
        assert await names(world) == (["real", "x"] if stays else ["real"])

    run_story(story)


def test_what_was_there_before_the_collector_is_collected_too() -> None:
    async def story(world: World) -> None:
        await world.create(config_map("x", ABSENT))
        world.start_manager(CONTROLLERS)
        await world.settle(3)
        assert await names(world) == []

    play(story, controllers=[])


def test_an_owner_of_the_cluster_owns_in_every_namespace() -> None:
    async def story(world: World) -> None:
        await world.create(node_document("n1"))
        uid = (await world.get(NODE, "n1"))["metadata"]["uid"]
        await world.create(config_map("x", {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid}))
        await world.settle()
        assert await names(world) == ["x"]
        await world.delete(NODE, "n1")
        await world.settle()
        assert await names(world) == []

    run_story(story)


def test_an_owner_in_another_namespace_is_absent() -> None:
    async def story(world: World) -> None:
        await world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
        await world.client.create(CONFIG_MAP, "elsewhere", config_map("own"))
        listing = await world.list(CONFIG_MAP)
        uid = listing[0]["metadata"]["uid"]
        await world.settle()
        await world.create(config_map("x", ABSENT | {"name": "own", "uid": uid}))
        await world.settle()
        assert await names(world) == ["own"]
        assert [event[:2] for event in await world.events()] == [("x", "OwnerRefInvalidNamespace")]

    run_story(story)


def test_custom_kinds_own_and_are_owned() -> None:
    async def story(world: World) -> None:
        await world.create(definition())
        await world.settle()
        widget: Document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await world.create(config_map("own"))
        widget["metadata"]["ownerReferences"] = [await owner_of(world, "own"), ABSENT]
        await world.client.create(WIDGET, NAMESPACE, widget)
        [found] = await world.list(WIDGET)
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": found["metadata"]["uid"]}
        await world.create(config_map("child", reference))
        await world.settle(2)
        [found] = await world.list(WIDGET)
        assert [owner["name"] for owner in found["metadata"]["ownerReferences"]] == ["own"]
        await delete(world, "own")
        assert (await names(world), await world.list(WIDGET)) == ([], [])
        await world.delete(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com")
        await world.settle()

    run_story(story)
