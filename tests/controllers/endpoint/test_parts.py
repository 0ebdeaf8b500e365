"""What a pod contributes to a service."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.controllers.endpoint.parts import (
    TriggerTimes,
    addresses_of,
    families_of,
    has_address,
    hostname_of,
    is_endpoint_changed,
    ports_of,
    selector_of_service,
)
from tests.controllers.network_documents import backend_view, service_view

NAMED = {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}
WEB = [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("parts", "is_one"),
    [
        pytest.param({}, True, id="it runs"),
        pytest.param({"address": ""}, False, id="it has no address yet"),
        pytest.param({"phase": "Succeeded"}, False, id="it has ended"),
        pytest.param({"going": True}, True, id="it goes"),
    ],
)
def test_a_pod_can_be_an_endpoint(parts: dict[str, Any], is_one: bool) -> None:
    assert has_address(backend_view("p", **parts)) is is_one


@pytest.mark.parametrize(
    ("spec", "ports"),
    [
        pytest.param({"containers": [{"name": "c", "ports": WEB}]}, [8080], id="of a container"),
        pytest.param(
            {"containers": [], "initContainers": [{"name": "c", "restartPolicy": "Always", "ports": WEB}]},
            [8080],
            id="of a sidecar",
        ),
        pytest.param({"containers": [], "initContainers": [{"name": "c", "ports": WEB}]}, [], id="of nobody who runs"),
        pytest.param({}, [], id="it has none of that name"),
    ],
)
def test_a_named_port_is(spec: dict[str, Any], ports: list[int]) -> None:
    found = ports_of(service_view(ports=[NAMED]), backend_view("p", **spec))
    assert [port.port for port in found] == ports


@pytest.mark.parametrize(
    ("spec", "families"),
    [
        pytest.param({}, ("IPv4",), id="it says"),
        pytest.param({"ipFamilies": ["IPv6", "IPv4"]}, ("IPv6", "IPv4"), id="it says two"),
        pytest.param({"ipFamilies": [], "clusterIP": "fd00::1"}, ("IPv6",), id="its address says"),
        pytest.param({"ipFamilies": [], "clusterIP": "None"}, ("IPv4", "IPv6"), id="nobody says"),
    ],
)
def test_a_service_is_reached_by(spec: dict[str, Any], families: tuple[str, ...]) -> None:
    assert families_of(service_view(**spec)) == families


def test_addresses_are_told_apart_by_family() -> None:
    pod = backend_view("p", "fd00::2")
    assert (addresses_of(pod, "IPv4"), addresses_of(pod, "IPv6")) == ((), ("fd00::2",))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        pytest.param({"hostname": "h", "subdomain": "web"}, "h", id="in the service's domain"),
        pytest.param({"hostname": "h", "subdomain": "other"}, None, id="in another one"),
        pytest.param({"subdomain": "web"}, None, id="without a name"),
    ],
)
def test_a_pod_is_known_by_name(spec: dict[str, Any], name: str | None) -> None:
    assert hostname_of(backend_view("p", **spec), service_view()) == name


def test_a_service_that_points_outside_selects_nobody() -> None:
    assert selector_of_service(service_view(type="ExternalName")).matches_nothing
    assert selector_of_service(service_view(selector=None)).matches_nothing
    assert selector_of_service(service_view()).matches({"app": "web"})


def test_only_what_matters_to_endpoints_is_a_change() -> None:
    assert not is_endpoint_changed(backend_view("p"), backend_view("p", labels={}))
    assert is_endpoint_changed(backend_view("p"), backend_view("p", is_ready=False))
    assert is_endpoint_changed(backend_view("p"), backend_view("p", going=True))
    assert is_endpoint_changed(backend_view("p"), backend_view("p", "10.9.9.9"))


def test_the_time_of_a_change_is_told_once() -> None:
    times, pod = TriggerTimes(), backend_view("p")
    assert times.observe(service_view(), [pod]) == "2026-01-01T00:00:00Z"
    assert times.observe(service_view(), [pod]) == ""
    times.forget("default/web")
    assert times.observe(service_view(), [pod]) == "2026-01-01T00:00:00Z"
