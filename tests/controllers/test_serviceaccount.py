"""Every namespace has a default account."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.kinds import SERVICE_ACCOUNT
from mooring.client.interface import Deletion
from tests.controllers.world import World, play


def namespace(name: str, phase: str = "Active") -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": phase}}


async def owners(world: World) -> list[str]:
    return sorted(each["metadata"]["namespace"] for each in await world.list(SERVICE_ACCOUNT))


def test_a_namespace_gets_an_account_and_gets_it_back() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("one"), namespace("two"))
        await world.settle()
        assert await owners(world) == ["one", "two"]
        await world.client.delete(SERVICE_ACCOUNT, "one", "default", Deletion())
        await world.settle()
        assert await owners(world) == ["one", "two"]

    play(story, controllers=["serviceaccount-controller"])


def test_a_namespace_that_goes_gets_none() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("one", "Terminating"))
        await world.settle()
        assert await owners(world) == []

    play(story, controllers=["serviceaccount-controller"])
