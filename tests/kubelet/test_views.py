"""Views of pods, and the ConfigMaps and Secrets that they refer to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mooring.api.decode import decode_as
from mooring.api.kinds import CONFIG_MAP, NAMESPACE, SECRET, SERVICE
from mooring.api.resources import fit_filter_requests
from mooring.client.interface import Client
from mooring.kit.clock import VirtualClock
from mooring.kit.loop import run
from mooring.kubelet.environment import service_variables
from mooring.kubelet.references import ReferencedObjects, ReferenceLookup, config_map_names, secret_names
from mooring.kubelet.views import ConfigMap, FullContainer, FullPod, FullProbe, KubeletPod, Secret
from tests.api_servers import open_loopback_client
from tests.kubelet.harness import container, container_with, pod, pod_with, whole


def test_a_whole_pod_is_a_pod_of_the_kubelet_with_whole_containers() -> None:
    one = whole(pod(containers=[container(command=["sleep", "1"])], initContainers=[container("first")]))

    assert isinstance(one, KubeletPod)
    assert [type(c) for c in (*one.spec.containers, *one.spec.init_containers)] == [FullContainer, FullContainer]
    assert one.spec.containers[0].command == ("sleep", "1")
    assert one.spec.enable_service_links


def test_a_probe_that_says_nothing_has_the_defaults_of_the_api() -> None:
    one = whole(pod(containers=[container(livenessProbe={"tcpSocket": {"port": "http"}})]))

    probe = one.spec.containers[0].liveness_probe

    assert probe is not None
    assert probe.tcp_socket is not None
    assert probe.tcp_socket.port == "http"
    assert FullProbe() == FullProbe(period_seconds=10, timeout_seconds=1, success_threshold=1, failure_threshold=3)


def test_binary_data_comes_as_bytes() -> None:
    assert decode_as(Secret, b'{"data": {"key": "aGVsbG8="}}').data == {"key": b"hello"}
    assert decode_as(ConfigMap, b'{"data": {"a": "b"}, "binaryData": {"c": "AP8="}}').binary_data == {"c": b"\x00\xff"}


def test_the_sources_of_volumes_are_known() -> None:
    volumes = [{"name": "all", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]

    one = whole(pod(volumes=volumes))

    projected = one.spec.volumes[0].projected
    assert projected is not None
    assert projected.sources[0].service_account_token is not None
    assert projected.sources[0].service_account_token.expiration_seconds == 3600
    assert isinstance(one, FullPod)


# --- Decoding pods for simulated kubelets ----------------------------------------------------------------------------


RAW = b"""{"metadata":{"name":"web","uid":"u","deletionGracePeriodSeconds":7},
"spec":{"restartPolicy":"Never","readinessGates":[{"conditionType":"lb"}],"containers":[{"name":"main",
"resources":{"requests":{"cpu":"1500m"}},"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In",
"values":[3]}}]}]},"status":{"podIP":"10.0.0.2","containerStatuses":[{"name":"main","restartCount":2,"started":true,
"lastState":{"terminated":{"exitCode":3,"containerID":"c"}},"state":{"running":{"startedAt":"t"}}}]}}"""


def test_a_pod_is_read() -> None:
    pod = decode_as(KubeletPod, RAW)
    (main,), (reported,) = pod.spec.containers, pod.status.container_statuses
    assert pod.metadata.deletion_grace_period_seconds == 7
    assert (pod.spec.restart_policy, pod.spec.readiness_gates[0].condition_type) == ("Never", "lb")
    codes = main.restart_policy_rules[0].exit_codes
    assert codes is not None
    assert (codes.operator, codes.values) == ("In", (3,))
    assert pod.status.pod_ip == "10.0.0.2"
    assert reported.last_state.terminated is not None
    assert (reported.last_state.terminated.exit_code, reported.last_state.terminated.container_id) == (3, "c")
    assert (reported.restart_count, reported.started) == (2, True)
    assert fit_filter_requests(pod) == {"cpu": 1500}


# --- Objects that a pod refers to are read through the client


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


def test_services_of_the_namespace_have_variables_and_the_master_service() -> None:
    assert [service.metadata.name for service in looked_up(services).services] == ["kubernetes", "db"]


def test_without_service_links_there_are_only_variables_of_the_master_service() -> None:
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
