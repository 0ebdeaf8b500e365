"""Stories of the older endpoints of services, on virtual time."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.api.kinds import ENDPOINTS, POD, SERVICE
from tests.controllers.network_documents import backend, service
from tests.controllers.world import Story, World, play

LEADER = "control-plane.alpha.kubernetes.io/leader"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"


def tell(story: Story) -> None:
    play(story, controllers=["endpoints-controller"])


def endpoints(name: str = "web", **metadata: object) -> Document:
    subset = {"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 1}]}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name, **metadata}, "subsets": [subset]}


async def addresses(world: World) -> list[str]:
    subsets = (await world.get(ENDPOINTS, "web")).get("subsets") or []
    return [each["ip"] for subset in subsets for each in subset.get("addresses", [])]


def test_endpoints_are_written_only_if_they_differ() -> None:
    async def story(world: World) -> None:
        await world.create(service(), backend("a"))
        await world.settle()
        assert await addresses(world) == ["10.1.0.1"]
        written = (await world.get(ENDPOINTS, "web"))["metadata"]
        assert written["labels"] == {"team": "x", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        await world.patch(POD, "a", {"metadata": {"labels": {"more": "labels"}}})
        await world.settle()
        again = (await world.get(ENDPOINTS, "web"))["metadata"]
        assert again["resourceVersion"] == written["resourceVersion"]

    tell(story)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"subsets": []}, id="addresses"),
        pytest.param({"metadata": {"labels": {"team": "y"}}}, id="labels"),
        pytest.param({"metadata": {"annotations": {OVER_CAPACITY: "truncated"}}}, id="a note that it is too large"),
    ],
)
def test_what_somebody_else_changed_is_put_right_with_the_next_look(patch: Document) -> None:
    async def story(world: World) -> None:
        await world.create(service(), backend("a"))
        await world.settle()
        before = await world.get(ENDPOINTS, "web")
        await world.patch(ENDPOINTS, "web", patch)
        await world.patch(SERVICE, "web", {"metadata": {"annotations": {"look": "again"}}})
        await world.settle()
        after = await world.get(ENDPOINTS, "web")
        assert await addresses(world) == ["10.1.0.1"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]
        assert OVER_CAPACITY not in after["metadata"].get("annotations", {})

    tell(story)


def test_endpoints_that_somebody_deletes_come_back() -> None:
    async def story(world: World) -> None:
        await world.create(service(), backend("a"))
        await world.settle()
        await world.delete(ENDPOINTS, "web")
        await world.settle()
        assert await addresses(world) == ["10.1.0.1"]

    tell(story)


def test_what_was_left_over_is_deleted_at_the_start_unless_leaders_are_elected_there() -> None:
    async def story(world: World) -> None:
        await world.create(endpoints("left-over"), endpoints("election", annotations={LEADER: "{}"}))
        await world.settle()
        assert len(await world.list(ENDPOINTS)) == 2, "nobody looks at what comes later"
        world.start_manager(["endpoints-controller"])
        await world.settle()
        assert [each["metadata"]["name"] for each in await world.list(ENDPOINTS)] == ["election"]

    tell(story)
