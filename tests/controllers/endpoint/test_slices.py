"""Stories of services, their slices and their older endpoints, on virtual time."""

from __future__ import annotations

from mooring.api.kinds import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE
from mooring.client.interface import Deletion
from mooring.controllers.settings import ControllerSettings
from tests.controllers.network_documents import backend, node, service
from tests.controllers.world import Story, World, play

CONTROLLERS = ["endpointslice-controller", "endpoints-controller"]


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS, settings=ControllerSettings(max_endpoints_per_slice=3))


async def in_slices(world: World) -> list[list[str]]:
    """The pods in each slice."""
    slices = await world.list(ENDPOINT_SLICE)
    return [sorted(each["targetRef"]["name"] for each in one.get("endpoints") or []) for one in slices]


async def in_endpoints(world: World) -> list[tuple[list[str], list[str]]]:
    """Ready and not, of each subset."""
    subsets = (await world.get(ENDPOINTS, "web")).get("subsets") or []
    return [
        tuple([each["ip"] for each in subset.get(part, [])] for part in ("addresses", "notReadyAddresses"))  # type: ignore[misc]
        for subset in subsets
    ]


def test_a_service_follows_its_pods() -> None:
    async def story(world: World) -> None:
        await world.create(node(), service())
        await world.settle()
        assert await in_slices(world) == [[]]
        await world.create(backend("a", "10.1.0.1"), backend("b", "10.1.0.2", is_ready=False))
        await world.settle()
        assert await in_slices(world) == [["a", "b"]]
        assert await in_endpoints(world) == [(["10.1.0.1"], ["10.1.0.2"])]
        (one,) = await world.list(ENDPOINT_SLICE)
        assert one["metadata"]["labels"] == {
            "team": "x",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        assert one["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        await world.patch(POD, "a", {"metadata": {"labels": {"app": "other"}}})
        await world.settle()
        assert await in_slices(world) == [["b"]]
        await world.delete(POD, "b")
        await world.settle()
        assert await in_slices(world) == [[]]
        assert await in_endpoints(world) == []

    run_story(story)


def test_many_pods_lie_in_several_slices_and_nothing_is_made_twice() -> None:
    async def story(world: World) -> None:
        await world.create(node(), service())
        for number in range(8):
            await world.create(backend(f"p{number}", f"10.1.0.{number}"))
        await world.settle()
        assert sorted(map(len, await in_slices(world)))[-2:] == [3, 3]
        assert sorted(name for names in await in_slices(world) for name in names) == [f"p{n}" for n in range(8)]

    run_story(story)


def test_a_slice_that_somebody_deletes_comes_back() -> None:
    async def story(world: World) -> None:
        await world.create(node(), service(), backend("a"))
        await world.settle()
        (one,) = await world.list(ENDPOINT_SLICE)
        await world.client.delete(ENDPOINT_SLICE, "default", one["metadata"]["name"], Deletion())
        await world.settle(3)
        assert await in_slices(world) == [["a"]]

    run_story(story)


def test_endpoints_go_with_their_service() -> None:
    async def story(world: World) -> None:
        await world.create(node(), service(), backend("a"))
        await world.settle()
        await world.delete(SERVICE, "web")
        await world.settle()
        assert await world.list(ENDPOINTS) == []

    run_story(story)


def test_a_service_without_a_selector_is_left_to_others() -> None:
    async def story(world: World) -> None:
        outside = service("outside", type="ExternalName", externalName="example.com")
        del outside["spec"]["clusterIP"], outside["spec"]["ipFamilies"]
        await world.create(service(selector=None), outside)
        await world.settle()
        assert await world.list(ENDPOINT_SLICE) == []
        assert await world.list(ENDPOINTS) == []

    run_story(story)
