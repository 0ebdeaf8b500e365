"""Objects that a pod refers to are read through the client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mooring.api.kinds import CONFIG_MAP, NAMESPACE, SECRET, SERVICE
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kubelet.environment import service_variables
from mooring.kubelet.references import ReferencedObjects, ReferenceLookup, config_map_names, secret_names
from tests.api_servers import open_loopback_client
from tests.kubelet.harness import container_with, pod_with

REFERENCES: dict[str, Any] = {
    "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "s"}}, {"configMapRef": {"name": "b"}}],
    "env": [
        {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}},
        {"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "Z", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}},
        {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
}


def looked_up(
    fill: Callable[[Client], Awaitable[None]], *, links: bool = True, url: str = "", **fields: Any
) -> ReferencedObjects:
    async def main() -> ReferencedObjects:
        async with open_loopback_client(VirtualClock()) as client:
            await client.create(NAMESPACE, "", {"metadata": {"name": "other"}})
            await fill(client)
            one = pod_with({"enableServiceLinks": links}, **fields)
            return await ReferenceLookup(client, url).look_up(one, one.spec.containers[0])

    return run(main())


async def services(client: Client) -> None:
    for namespace, name, address in (
        ("default", "kubernetes", "10.96.0.1"),
        ("default", "db", "10.96.0.2"),
        ("default", "headless", "None"),
        ("other", "far", "10.96.0.3"),
    ):
        body = {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}}
        await client.create(SERVICE, namespace, body)


def test_each_object_is_named_once() -> None:
    assert config_map_names(container_with(**REFERENCES)) == ["a", "b", "c"]
    assert secret_names(container_with(**REFERENCES)) == ["s", "t"]


def test_what_is_there_is_found_and_what_is_not_is_none() -> None:
    async def fill(client: Client) -> None:
        await client.create(CONFIG_MAP, "default", {"metadata": {"name": "a"}, "data": {"k": "v"}})
        await client.create(SECRET, "default", {"metadata": {"name": "s"}, "data": {"k": "dg=="}})
        await client.create(CONFIG_MAP, "other", {"metadata": {"name": "b"}, "data": {"k": "v"}})

    found = looked_up(fill, **REFERENCES)

    assert {name: one and one.data for name, one in found.config_maps.items()} == {
        "a": {"k": "v"},
        "b": None,
        "c": None,
    }
    assert {name: one and one.data for name, one in found.secrets.items()} == {"s": {"k": b"v"}, "t": None}
    assert found.services == []


def test_services_of_the_namespace_are_told_with_the_master() -> None:
    assert [service.metadata.name for service in looked_up(services).services] == ["kubernetes", "db"]


def test_who_wants_no_links_is_told_the_master_only() -> None:
    assert [service.metadata.name for service in looked_up(services, links=False).services] == ["kubernetes"]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        pytest.param("https://127.0.0.1:6443", "127.0.0.1", "6443", id="an address"),
        pytest.param("https://[::1]:6443", "::1", "6443", id="of version 6"),
        pytest.param("https://api.example/prefix", "api.example", "443", id="a name"),
    ],
)
def test_pods_reach_the_api_server_at_its_own_address(url: str, host: str, port: str, links: bool) -> None:
    variables = service_variables(looked_up(services, links=links, url=url).services)
    assert variables["KUBERNETES_SERVICE_HOST"] == host
    assert variables["KUBERNETES_SERVICE_PORT"] == variables["KUBERNETES_SERVICE_PORT_HTTPS"] == port
    assert ("DB_SERVICE_HOST" in variables) is links
