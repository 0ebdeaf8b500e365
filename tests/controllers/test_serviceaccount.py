"""The default account of every namespace, and cluster roles that aggregate others."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CLUSTER_ROLE, CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT
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


# --- Roles that gather the rules of others ---------------------------------------------------------------------------


READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
READ_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}


def role(name: str, *rules: Document, labels: dict[str, str] | None = None, gathers: str = "") -> Document:
    document: Document = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels or {}},
        "rules": [*rules],
    }
    if gathers:
        document["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"to": gathers}}]}
    return document


def test_rules_come_by_name_each_once_and_follow_changes() -> None:
    async def story(world: World) -> None:
        await world.create(
            role("all", gathers="all", labels={"to": "all"}),
            role("z", READ_NODES, READ_PODS, labels={"to": "all"}),
            role("a", READ_PODS, labels={"to": "all"}),
            role("other", READ_NODES),
        )
        await world.settle()
        assert (await world.get(CLUSTER_ROLE, "all"))["rules"] == [READ_PODS, READ_NODES]
        await world.delete(CLUSTER_ROLE, "z")
        await world.settle()
        assert (await world.get(CLUSTER_ROLE, "all"))["rules"] == [READ_PODS]

    play(story, controllers=["clusterrole-aggregation-controller"])
