"""Stories of services, their slices and their older endpoints, on virtual time.

How the endpoints of a service lie in slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE
from mooring.api.views.pod import Pod
from mooring.api.views.workloads import Endpoint, EndpointConditions, EndpointSlice
from mooring.client.interface import Deletion
from mooring.controllers.endpoint.slices import (
    DesiredSlice,
    SliceChanges,
    endpoint_of,
    plan_slices,
    slice_document,
)
from mooring.controllers.settings import ControllerSettings
from tests.controllers.cluster_builders import backend, backend_view, node, service, service_view
from tests.controllers.world import Story, World, play

CONTROLLERS = ["endpointslice-controller", "endpoints-controller"]


def run_story(story: Story) -> None:
    play(story, controllers=CONTROLLERS, settings=ControllerSettings(max_endpoints_per_slice=3))


async def in_slices(world: World) -> list[list[str]]:
    """The pods in each slice."""
    slices = await world.list(ENDPOINT_SLICE)
    return [sorted(endpoint["targetRef"]["name"] for endpoint in one.get("endpoints") or []) for one in slices]


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


def test_a_deleted_slice_is_created_again() -> None:
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


LIMIT = 3


def backends(count: int, first: int = 0) -> list[Pod]:
    return [backend_view(f"p{number}", f"10.1.0.{number}") for number in range(first, first + count)]


def written(draft: DesiredSlice, name: str, **parts: Any) -> EndpointSlice:
    """A draft as the API would answer it."""
    document = slice_document(draft, service_view(**parts), "IPv4", "")
    document["metadata"] |= {"name": name, "namespace": "default", "resourceVersion": "1"}
    return decode_as(EndpointSlice, msgspec.json.encode(document))


def plan(pods: Sequence[Pod], slices: Sequence[EndpointSlice] = (), **parts: Any) -> SliceChanges:
    return plan_slices(service_view(**parts), "IPv4", pods, slices, lambda name: "z1", LIMIT)


def slices_of(pods: Sequence[Pod]) -> list[EndpointSlice]:
    changes = plan(pods)
    return [written(draft, f"s{number}") for number, draft in enumerate(changes.to_create)]


def sizes(drafts: Sequence[DesiredSlice]) -> list[int]:
    return [len(draft.endpoints) for draft in drafts]


@pytest.mark.parametrize(
    ("before", "after", "created", "updated", "deleted"),
    [
        pytest.param([], backends(2), [2], [], 0, id="the first go into a new slice"),
        pytest.param([], backends(7), [3, 3, 1], [], 0, id="many go into several"),
        pytest.param(backends(2), backends(2), [], [], 0, id="nothing changed"),
        pytest.param(backends(2), backends(3), [], [3], 0, id="one more fills up what has room"),
        pytest.param(backends(3), backends(4), [1], [], 0, id="one more than fits gets a new slice"),
        pytest.param(backends(3), backends(2), [], [2], 0, id="one less leaves a gap"),
        pytest.param(backends(6), [*backends(2), *backends(3, 3)], [], [2], 0, id="slices are not packed closer"),
        pytest.param(backends(4), backends(3), [], [], 1, id="a slice that becomes empty goes"),
        pytest.param(backends(6), [*backends(2), *backends(4, 3)], [], [3], 0, id="a gap in a written slice is filled"),
        pytest.param(backends(2), [], [], [0], 0, id="without endpoints one empty slice stays"),
        pytest.param([], [], [0], [], 0, id="or is made"),
    ],
)
def test_slices(before: list[Pod], after: list[Pod], created: list[int], updated: list[int], deleted: int) -> None:
    changes = plan(after, slices_of(before) if before else [])
    assert sizes(changes.to_create) == created
    assert sizes(changes.to_update) == updated
    assert len(changes.to_delete) == deleted


def test_an_empty_slice_is_left_alone() -> None:
    (empty,) = slices_of([])
    changes = plan([], [empty])
    assert (changes.to_create, changes.to_update, changes.to_delete) == ([], [], [])


def test_a_slice_of_a_former_service_of_that_name_goes() -> None:
    (known,) = slices_of(backends(1))
    changes = plan_slices(service_view("web2"), "IPv4", backends(1), [known], lambda name: "z1", LIMIT)
    assert changes.to_delete == [known]
    assert sizes(changes.to_create) == [1]


def test_a_pod_on_an_unknown_node_is_reported() -> None:
    changes = plan_slices(service_view(), "IPv4", backends(1), [], lambda name: None, LIMIT)
    assert changes.errors == ["skipping Pod p0 for Service default/web: Node n1 Not Found"]


def test_pods_with_other_ports_lie_in_other_slices() -> None:
    named = {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}
    pods = [
        backend_view(
            f"p{number}",
            f"10.1.0.{number}",
            containers=[{"name": "c", "ports": [{"name": "web", "containerPort": number, "protocol": "TCP"}]}],
        )
        for number in (8080, 8081, 8081)
    ]
    changes = plan(pods, ports=[named])
    assert sorted((draft.ports[0].port, len(draft.endpoints)) for draft in changes.to_create) == [(8080, 1), (8081, 1)]


@pytest.mark.parametrize(
    ("pod", "spec", "conditions"),
    [
        pytest.param({}, {}, (True, True, False), id="ready"),
        pytest.param({"is_ready": False}, {}, (False, False, False), id="not ready"),
        pytest.param({"going": True}, {}, (False, True, True), id="serving while it goes"),
        pytest.param(
            {"is_ready": False},
            {"publishNotReadyAddresses": True},
            (True, False, False),
            id="the service does not mind",
        ),
    ],
)
def test_an_endpoint_is(pod: dict[str, Any], spec: dict[str, Any], conditions: tuple[bool, bool, bool]) -> None:
    ready, serving, terminating = conditions
    endpoint = endpoint_of(backend_view("p", **pod), service_view(**spec), "IPv4", "z1")
    assert endpoint.conditions == EndpointConditions(ready=ready, serving=serving, terminating=terminating)


def hints_of(endpoint: Endpoint) -> tuple[list[str], list[str]] | None:
    hints = endpoint.hints
    return None if hints is None else ([z.name for z in hints.for_zones], [n.name for n in hints.for_nodes])


@pytest.mark.parametrize(
    ("preference", "hints"),
    [
        pytest.param(None, None, id="nothing is said"),
        pytest.param("PreferClose", (["z1"], []), id="close"),
        pytest.param("PreferSameZone", (["z1"], []), id="the same zone"),
        pytest.param("PreferSameNode", (["z1"], ["n1"]), id="the same node"),
    ],
)
def test_traffic_is_hinted(preference: str | None, hints: object) -> None:
    endpoint = endpoint_of(backend_view("p"), service_view(trafficDistribution=preference), "IPv4", "z1")
    assert hints_of(endpoint) == hints
