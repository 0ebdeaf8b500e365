"""Stories of Endpoints that users write, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import ENDPOINT_SLICE, ENDPOINTS, SERVICE
from tests.controllers.cluster_builders import service
from tests.controllers.world import Story, World, play

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslicemirroring-controller.k8s.io"


def endpoints(*subsets: Document, **metadata: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", **metadata},
        "subsets": [*subsets],
    }


def subset(*addresses: str, unready: tuple[str, ...] = (), port: int = 80) -> Document:
    return {
        "addresses": [{"ip": each} for each in addresses],
        "notReadyAddresses": [{"ip": each} for each in unready],
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }


def plain_service() -> Document:
    document = service()
    del document["spec"]["selector"]
    return document


async def mirrored(world: World) -> list[tuple[str, int, list[tuple[str, bool]]]]:
    """Family, port and addresses of each slice."""
    return [
        (
            each["addressType"],
            each["ports"][0]["port"],
            [(endpoint["addresses"][0], endpoint["conditions"]["ready"]) for endpoint in each["endpoints"]],
        )
        for each in await world.list(ENDPOINT_SLICE)
        if each["metadata"]["labels"].get(MANAGED_BY) == MANAGER
    ]


def run_story(story: Story) -> None:
    play(story, controllers=["endpointslice-mirroring-controller"])


def test_slices_follow_the_endpoints_that_a_user_writes() -> None:
    async def story(world: World) -> None:
        annotations = {"note": "x", "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"}
        await world.create(plain_service())
        await world.create(endpoints(subset("10.0.0.1", unready=("10.0.0.2",)), annotations=annotations))
        await world.settle()
        assert await mirrored(world) == [("IPv4", 80, [("10.0.0.1", True), ("10.0.0.2", False)])]
        [found] = await world.list(ENDPOINT_SLICE)
        assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
        assert found["metadata"]["annotations"] == {"note": "x"}
        assert [owner["kind"] for owner in found["metadata"]["ownerReferences"]] == ["Endpoints"]
        await world.patch(ENDPOINTS, "web", {"subsets": [subset("10.0.0.1", "fd00::1"), subset("10.0.0.3", port=81)]})
        await world.settle()
        assert sorted(await mirrored(world)) == [
            ("IPv4", 80, [("10.0.0.1", True)]),
            ("IPv4", 81, [("10.0.0.3", True)]),
            ("IPv6", 80, [("fd00::1", True)]),
        ]
        revisions = [each["metadata"]["resourceVersion"] for each in await world.list(ENDPOINT_SLICE)]
        await world.patch(SERVICE, "web", {"metadata": {"labels": {"a": "b"}}})
        await world.settle()
        assert [each["metadata"]["resourceVersion"] for each in await world.list(ENDPOINT_SLICE)] == revisions
        await world.delete(ENDPOINTS, "web")
        await world.settle()
        assert await mirrored(world) == []

    run_story(story)


@pytest.mark.parametrize(
    ("of", "metadata"),
    [
        pytest.param(service(), {}, id="the service has a selector"),
        pytest.param(None, {}, id="there is no service"),
        pytest.param(
            plain_service(), {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, id="a label forbids it"
        ),
        pytest.param(
            plain_service(), {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}, id="leader election"
        ),
    ],
)
def test_what_is_not_mirrored(of: Document | None, metadata: Document) -> None:
    async def story(world: World) -> None:
        if of is not None:
            await world.create(of)
        await world.create(endpoints(subset("10.0.0.1"), **metadata))
        await world.settle()
        assert await mirrored(world) == []

    run_story(story)


def test_slices_go_with_their_service_and_come_back_when_they_are_deleted() -> None:
    async def story(world: World) -> None:
        await world.create(plain_service(), endpoints(subset("10.0.0.1")))
        await world.settle()
        [found] = await world.list(ENDPOINT_SLICE)
        await world.delete(ENDPOINT_SLICE, found["metadata"]["name"])
        await world.settle()
        assert len(await mirrored(world)) == 1
        await world.delete(SERVICE, "web")
        await world.settle()
        assert await mirrored(world) == []

    run_story(story)
