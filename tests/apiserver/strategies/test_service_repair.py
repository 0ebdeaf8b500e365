"""Who sends a service again without what was given to it gets the same one."""

from __future__ import annotations

import pytest

from mooring.api.document import Document
from mooring.apiserver.strategies.service_repair import fill_from_old, normalize_cluster_ips

FIRST: Document = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}
BALANCER: Document = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30009}


@pytest.mark.parametrize(
    ("spec", "old", "wanted"),
    [
        pytest.param({"clusterIP": "a"}, None, {"clusterIP": "a", "clusterIPs": ["a"]}, id="an old client creates"),
        pytest.param({"clusterIPs": ["a"]}, None, {"clusterIPs": ["a"]}, id="a new client must say both"),
        pytest.param({"clusterIP": "10.96.0.9"}, FIRST, FIRST, id="an old client knows nothing of the list"),
        pytest.param({"clusterIPs": ["10.96.0.9"]}, FIRST, {}, id="an old client takes it away"),
        pytest.param(
            {**FIRST, "clusterIP": "b"}, FIRST, {"clusterIP": "b", "clusterIPs": ["b"]}, id="an old client changes it"
        ),
        pytest.param(
            {"clusterIP": "b", "clusterIPs": ["c"]}, FIRST, {"clusterIP": "b", "clusterIPs": ["c"]}, id="a muddle stays"
        ),
    ],
)
def test_the_list_follows_the_single_address(spec: Document, old: Document | None, wanted: Document) -> None:
    normalize_cluster_ips(spec, old)
    assert spec == wanted


def test_addresses_are_filled_in() -> None:
    spec: Document = {"type": "ClusterIP"}
    fill_from_old(spec, {"type": "ClusterIP", **FIRST})
    assert spec == {"type": "ClusterIP", **FIRST}
    spec = {"type": "ExternalName"}
    fill_from_old(spec, {"type": "ClusterIP", **FIRST})
    assert spec == {"type": "ExternalName"}


def test_node_ports_are_filled_in_by_name() -> None:
    old: Document = {
        "type": "NodePort",
        "ports": [{"name": "a", "port": 1, "nodePort": 30001}, {"name": "b", "port": 2, "nodePort": 30002}],
    }
    ports: list[Document] = [{"name": "b", "port": 3}, {"name": "c", "port": 4}, {"name": "a", "port": 5}]
    fill_from_old({"type": "NodePort", "ports": ports}, old)
    assert [port.get("nodePort") for port in ports] == [30002, None, 30001]
    moved: list[Document] = [{"name": "a", "port": 1}, {"name": "z", "port": 2, "nodePort": 30001}]
    fill_from_old({"type": "NodePort", "ports": moved}, old)
    assert [port.get("nodePort") for port in moved] == [None, 30001]


def test_the_port_for_health_checks_is_filled_in() -> None:
    spec = {field: value for field, value in BALANCER.items() if field != "healthCheckNodePort"}
    fill_from_old(spec, BALANCER)
    assert spec == BALANCER
