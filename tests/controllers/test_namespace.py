"""Stories of namespaces that are deleted."""

from __future__ import annotations

from collections import Counter

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, POD, SECRET
from mooring.client.interface import Deletion
from mooring.controllers.namespace import ContentDeletion, conditions_after
from mooring.controllers.settings import ControllerSettings
from tests.controllers.cluster_builders import config_map, pod_document
from tests.controllers.world import Story, World, play

CONTROLLERS = ["namespace-controller"]
HELD = "example.com/held"
GOING = "going"


def true_conditions(deletion: ContentDeletion, *, with_totals: bool = True) -> dict[str, tuple[str, str]]:
    """Reason and message of those conditions that are true."""
    conditions = conditions_after([], deletion, "now", with_totals=with_totals)
    assert len(conditions) == 5
    assert {condition["lastTransitionTime"] for condition in conditions} == {"now"}
    return {each["type"]: (each["reason"], each["message"]) for each in conditions if each["status"] == "True"}


REMAINING = ContentDeletion(
    remaining={CONFIG_MAP: 2, DEPLOYMENT: 1}, finalizers=Counter({"b.example.com": 2, "a.example.com": 1})
)


def test_a_namespace_that_is_empty_is_well() -> None:
    assert true_conditions(ContentDeletion()) == {}


def test_remaining_content_is_reported_in_order() -> None:
    assert true_conditions(REMAINING) == {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances, "
            "deployments.apps has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: "
            "a.example.com in 1 resource instances, b.example.com in 2 resource instances",
        ),
    }


def test_while_pods_remain_the_rest_is_not_counted() -> None:
    assert true_conditions(REMAINING, with_totals=False) == {}


def test_errors_are_reported_in_order() -> None:
    assert true_conditions(ContentDeletion(errors=["second", "first"])) == {
        "NamespaceDeletionContentFailure": (
            "ContentDeletionFailed",
            "Failed to delete all resource types, 2 remaining: first, second",
        )
    }


@pytest.mark.parametrize(
    ("second", "time"),
    [
        pytest.param(ContentDeletion(), "later", id="another status"),
        pytest.param(REMAINING, "now", id="the same status"),
    ],
)
def test_the_time_changes_with_the_status(second: ContentDeletion, time: str) -> None:
    first = conditions_after([], REMAINING, "now", with_totals=True)
    after = conditions_after(first, second, "later", with_totals=True)
    assert _condition(after, "NamespaceContentRemaining")["lastTransitionTime"] == time
    assert _condition(after, "NamespaceDeletionContentFailure")["lastTransitionTime"] == "now"


def test_without_a_change_it_is_the_very_list() -> None:
    first = conditions_after([], REMAINING, "now", with_totals=True)
    assert conditions_after(first, REMAINING, "later", with_totals=True) is first


def _condition(conditions: list[Document], type: str) -> Document:
    [found] = [condition for condition in conditions if condition["type"] == type]
    return found


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS)


async def open_namespace(world: World) -> None:
    """With a finalizer of its own, so that it can be looked at in the end."""
    await world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GOING, "finalizers": [HELD]}})


async def create_within(world: World, *documents: Document) -> None:
    for document in documents:
        document["metadata"]["namespace"] = GOING
    await world.create(*documents)


async def delete_namespace(world: World) -> None:
    await world.client.delete(NAMESPACE, "", GOING, Deletion())


async def finalizers(world: World) -> list[str]:
    namespace: Document = await world.get(NAMESPACE, GOING)
    found: list[str] = namespace["spec"].get("finalizers", [])
    return found


def test_everything_in_it_goes_then_its_finalizer() -> None:
    async def story(world: World) -> None:
        await open_namespace(world)
        await create_within(world, config_map("cm"), pod_document("p"))
        await world.create(config_map("stranger"))
        await delete_namespace(world)
        await world.settle(4)
        assert len(await world.list(CONFIG_MAP)) == 2
        await world.settle(8)
        assert [each["metadata"]["name"] for each in await world.list(CONFIG_MAP)] == ["stranger"]
        assert await world.pods() == []
        assert await finalizers(world) == []
        conditions = await world.conditions(GOING, NAMESPACE)
        assert {status for status, _ in conditions.values()} == {"False"}

    run_story(story)


def test_while_a_pod_is_left_nothing_else_is_deleted() -> None:
    async def story(world: World) -> None:
        await open_namespace(world)
        pod = pod_document("p", "n1")
        pod["spec"]["terminationGracePeriodSeconds"] = 30
        secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "needed"}}
        await create_within(world, pod, secret)
        await delete_namespace(world)
        await world.settle(10)
        assert len(await world.list(SECRET)) == 1
        assert (await world.get(POD, "p", namespace=GOING))["metadata"]["deletionTimestamp"]
        await world.delete(POD, "p", namespace=GOING)
        await world.settle(20)
        assert await world.list(SECRET) == []
        assert await finalizers(world) == []

    run_story(story)


def test_objects_with_finalizers_are_awaited_and_reported() -> None:
    async def story(world: World) -> None:
        await open_namespace(world)
        await create_within(world, config_map("cm", finalizers=["example.com/hold"]))
        await delete_namespace(world)
        await world.settle(8)
        conditions = await world.conditions(GOING, NAMESPACE)
        assert conditions["NamespaceContentRemaining"] == ("True", "SomeResourcesRemain")
        assert conditions["NamespaceFinalizersRemaining"] == ("True", "SomeFinalizersRemain")
        assert await finalizers(world) == ["kubernetes"]
        await world.patch(CONFIG_MAP, "cm", {"metadata": {"finalizers": None}}, namespace=GOING)
        await world.settle(10)
        assert await finalizers(world) == []

    run_story(story)


@pytest.mark.parametrize(
    ("period_s", "left"),
    [pytest.param(300.0, ["kubernetes"], id="its own time"), pytest.param(1.0, [], id="a short period")],
)
def test_terminating_namespaces_are_tried_again_after_each_period(period_s: float, left: list[str]) -> None:
    async def story(world: World) -> None:
        await open_namespace(world)
        await create_within(world, config_map("cm", finalizers=["example.com/hold"]))
        await delete_namespace(world)
        await world.settle(11)
        await world.patch(CONFIG_MAP, "cm", {"metadata": {"finalizers": None}}, namespace=GOING)
        await world.settle(6)
        assert await finalizers(world) == left

    play(story, controllers=CONTROLLERS, settings=ControllerSettings(namespace_sync_period_s=period_s))


def test_a_namespace_that_is_not_deleted_is_left_alone() -> None:
    async def story(world: World) -> None:
        await open_namespace(world)
        await create_within(world, config_map("cm"))
        await world.settle(60)
        assert len(await world.list(CONFIG_MAP)) == 1

    run_story(story)
