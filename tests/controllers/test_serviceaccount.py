"""Every namespace has a default account."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT
from mooring.api.well_known import DESCRIPTION_ANNOTATION, ROOT_CA_CONFIG_MAP
from mooring.apiserver.bootstrap import NAMESPACES
from mooring.client.interface import Deletion, PatchForm
from mooring.controllers.serviceaccount import DESCRIPTION
from tests.controllers.world import World, play

PEM = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n"
CONTROLLERS = ["root-ca-certificate-publisher-controller"]


def namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


ALL = sorted((*NAMESPACES, "one", "two"))


async def owners(world: World) -> list[str]:
    return sorted(each["metadata"]["namespace"] for each in await world.list(SERVICE_ACCOUNT))


def test_a_namespace_gets_an_account_and_gets_it_back() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("one"), namespace("two"))
        await world.settle()
        assert await owners(world) == ALL
        await world.client.delete(SERVICE_ACCOUNT, "one", "default", Deletion())
        await world.settle()
        assert await owners(world) == ALL

    play(story, controllers=["serviceaccount-controller"])


def test_a_namespace_that_goes_gets_none() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("one"))
        await world.client.delete(NAMESPACE, "", "one")
        assert (await world.get(NAMESPACE, "one"))["status"]["phase"] == "Terminating"
        world.start_manager(["serviceaccount-controller"])
        await world.settle()
        assert await owners(world) == sorted(NAMESPACES)

    play(story, controllers=[])


async def published(world: World) -> dict[str, Document]:
    """The ConfigMaps of that name, by namespace."""
    found = await world.list(CONFIG_MAP)
    return {each["metadata"]["namespace"]: each for each in found if each["metadata"]["name"] == ROOT_CA_CONFIG_MAP}


async def start(world: World) -> None:
    world.start_manager(CONTROLLERS, root_ca_pem=PEM)
    await world.create(namespace("one"), namespace("two"))
    await world.settle()


def test_each_namespace_gets_the_authority() -> None:
    async def story(world: World) -> None:
        await start(world)
        found = await published(world)
        assert sorted(found) == ALL
        assert found["one"]["data"] == {"ca.crt": PEM}
        assert found["one"]["metadata"]["annotations"] == {DESCRIPTION_ANNOTATION: DESCRIPTION}

    play(story, controllers=[])


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"data": {"ca.crt": "another"}}, id="another authority"),
        pytest.param({"data": {"more": "x"}}, id="another key"),
        pytest.param({"metadata": {"annotations": {DESCRIPTION_ANNOTATION: ""}}}, id="no description"),
    ],
)
def test_a_change_is_reverted(patch: Document) -> None:
    async def story(world: World) -> None:
        await start(world)
        mine: Document = {"labels": {"mine": "yes"}}
        metadata = {**patch.get("metadata", {}), **mine}
        await world.client.patch(
            CONFIG_MAP, "one", ROOT_CA_CONFIG_MAP, {**patch, "metadata": metadata}, form=PatchForm.MERGE
        )
        await world.settle()
        found = (await published(world))["one"]
        assert found["data"] == {"ca.crt": PEM}
        assert found["metadata"]["annotations"] == {DESCRIPTION_ANNOTATION: DESCRIPTION}
        assert found["metadata"]["labels"] == {"mine": "yes"}

    play(story, controllers=[])


def test_a_deleted_one_is_created_again() -> None:
    async def story(world: World) -> None:
        await start(world)
        await world.client.delete(CONFIG_MAP, "one", ROOT_CA_CONFIG_MAP)
        await world.settle()
        assert sorted(await published(world)) == ALL

    play(story, controllers=[])
