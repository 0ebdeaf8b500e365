"""Endpoints of services, and slices that mirror the Endpoints of users, on virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE
from mooring.api.views.pod import Pod
from mooring.controllers.endpoint.endpoints import are_subsets_same, plan_subsets, truncated
from tests.controllers.cluster_builders import HTTP, backend, backend_view, service, service_view
from tests.controllers.world import Story, World, play

ADMIN: Document = {"name": "admin", "port": 81, "targetPort": "admin", "protocol": "TCP"}
LEADER = "control-plane.alpha.kubernetes.io/leader"
ENDPOINTS_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"


def with_admin(name: str, address: str, port: int) -> Pod:
    ports = [{"name": "admin", "containerPort": port, "protocol": "TCP"}]
    return backend_view(name, address, containers=[{"name": "c", "ports": ports}])


def addresses(subset: Document, field: str = "addresses") -> list[str]:
    return [each["ip"] for each in subset.get(field, [])]


def test_addresses_with_the_same_ports_are_one_subset() -> None:
    pods = [with_admin("a", "10.1.0.1", 9000), with_admin("b", "10.1.0.2", 9000), with_admin("c", "10.1.0.3", 9001)]
    subsets = plan_subsets(service_view(ports=[HTTP, ADMIN]), pods)
    found = sorted((addresses(subset), [port["port"] for port in subset["ports"]]) for subset in subsets)
    assert found == [
        (["10.1.0.1", "10.1.0.2"], [9000]),
        (["10.1.0.1", "10.1.0.2", "10.1.0.3"], [8080]),
        (["10.1.0.3"], [9001]),
    ]


def test_a_headless_service_without_ports_has_addresses_alone() -> None:
    (subset,) = plan_subsets(service_view(clusterIP="None", ports=[]), [backend_view("a")])
    assert subset == {
        "addresses": [
            {
                "ip": "10.1.0.1",
                "nodeName": "n1",
                "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "uid-a"},
            }
        ]
    }


def test_pods_that_go_are_left_out_unless_the_service_does_not_mind() -> None:
    going = [backend_view("a", going=True)]
    assert plan_subsets(service_view(), going) == []
    assert len(plan_subsets(service_view(publishNotReadyAddresses=True), going)) == 1


def test_too_many_addresses_are_cut_down_ready_ones_first() -> None:
    ready = [{"ip": f"r{number}"} for number in range(900)]
    unready = [{"ip": f"u{number}"} for number in range(300)]
    cut = truncated([{"addresses": ready, "notReadyAddresses": unready}])
    assert cut is not None
    assert (len(cut[0]["addresses"]), len(cut[0]["notReadyAddresses"])) == (900, 100)
    cut = truncated([{"addresses": ready}, {"addresses": ready, "notReadyAddresses": unready}])
    assert cut is not None
    assert [len(addresses(subset)) for subset in cut] == [500, 500]
    assert addresses(cut[1], "notReadyAddresses") == []
    assert truncated([{"addresses": ready}]) is None


def test_order_and_versions_of_pods_do_not_count() -> None:
    one: Document = {"ip": "1", "targetRef": {"name": "a", "resourceVersion": "7"}}
    other: Document = {"ip": "1", "targetRef": {"name": "a"}}
    ports = [{"port": 1}, {"port": 2}]
    assert are_subsets_same([{"addresses": [one], "ports": ports}], [{"addresses": [other], "ports": ports[::-1]}])
    assert not are_subsets_same([{"addresses": [one]}], [{"notReadyAddresses": [other]}])


def run_story(story: Story) -> None:
    play(story, controllers=["endpoints-controller"])


def endpoints(name: str = "web", **metadata: object) -> Document:
    subset = {"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 1}]}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name, **metadata}, "subsets": [subset]}


async def stored_addresses(world: World) -> list[str]:
    subsets = (await world.get(ENDPOINTS, "web")).get("subsets") or []
    return [address["ip"] for subset in subsets for address in subset.get("addresses", [])]


def test_endpoints_are_written_only_if_they_differ() -> None:
    async def story(world: World) -> None:
        await world.create(service(), backend("a"))
        await world.settle()
        assert await stored_addresses(world) == ["10.1.0.1"]
        written = (await world.get(ENDPOINTS, "web"))["metadata"]
        assert written["labels"] == {"team": "x", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        await world.patch(POD, "a", {"metadata": {"labels": {"more": "labels"}}})
        await world.settle()
        again = (await world.get(ENDPOINTS, "web"))["metadata"]
        assert again["resourceVersion"] == written["resourceVersion"]

    run_story(story)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"subsets": []}, id="addresses"),
        pytest.param({"metadata": {"labels": {"team": "y"}}}, id="labels"),
        pytest.param(
            {"metadata": {"annotations": {ENDPOINTS_OVER_CAPACITY: "truncated"}}}, id="a note that it is too large"
        ),
    ],
)
def test_changes_of_other_clients_are_corrected_by_the_next_sync(patch: Document) -> None:
    async def story(world: World) -> None:
        await world.create(service(), backend("a"))
        await world.settle()
        before = await world.get(ENDPOINTS, "web")
        await world.patch(ENDPOINTS, "web", patch)
        await world.patch(SERVICE, "web", {"metadata": {"annotations": {"read": "again"}}})
        await world.settle()
        after = await world.get(ENDPOINTS, "web")
        assert await stored_addresses(world) == ["10.1.0.1"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]
        assert ENDPOINTS_OVER_CAPACITY not in after["metadata"].get("annotations", {})

    run_story(story)


def test_deleted_endpoints_are_created_again() -> None:
    async def story(world: World) -> None:
        await world.create(service(), backend("a"))
        await world.settle()
        await world.delete(ENDPOINTS, "web")
        await world.settle()
        assert await stored_addresses(world) == ["10.1.0.1"]

    run_story(story)


def test_what_was_left_over_is_deleted_at_the_start_unless_leaders_are_elected_there() -> None:
    async def story(world: World) -> None:
        await world.create(endpoints("left-over"), endpoints("election", annotations={LEADER: "{}"}))
        await world.settle()
        assert len(await world.list(ENDPOINTS)) == 2, "later changes are ignored"
        world.start_manager(["endpoints-controller"])
        await world.settle()
        assert [each["metadata"]["name"] for each in await world.list(ENDPOINTS)] == ["election"]

    run_story(story)


MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslicemirroring-controller.k8s.io"


def user_endpoints(*subsets: Document, **metadata: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", **metadata},
        "subsets": [*subsets],
    }


def subset(*addresses: str, unready: tuple[str, ...] = (), port: int = 80) -> Document:
    return {
        "addresses": [{"ip": address} for address in addresses],
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


def play_mirroring(story: Story) -> None:
    play(story, controllers=["endpointslice-mirroring-controller"])


def test_slices_follow_the_endpoints_that_a_user_writes() -> None:
    async def story(world: World) -> None:
        annotations = {"note": "x", "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"}
        await world.create(plain_service())
        await world.create(user_endpoints(subset("10.0.0.1", unready=("10.0.0.2",)), annotations=annotations))
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

    play_mirroring(story)


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
        await world.create(user_endpoints(subset("10.0.0.1"), **metadata))
        await world.settle()
        assert await mirrored(world) == []

    play_mirroring(story)


def test_slices_go_with_their_service_and_come_back_when_they_are_deleted() -> None:
    async def story(world: World) -> None:
        await world.create(plain_service(), user_endpoints(subset("10.0.0.1")))
        await world.settle()
        [found] = await world.list(ENDPOINT_SLICE)
        await world.delete(ENDPOINT_SLICE, found["metadata"]["name"])
        await world.settle()
        assert len(await mirrored(world)) == 1
        await world.delete(SERVICE, "web")
        await world.settle()
        assert await mirrored(world) == []

    play_mirroring(story)
