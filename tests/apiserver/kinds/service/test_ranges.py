"""Tests of kinds.service.ranges."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.service.ranges import (
    AllocationError,
    RangeFull,
    ServiceAddresses,
    ServicePorts,
    fill_from_old,
    normalize_cluster_ips,
)
from mooring.kit.entropy import Entropy

NETWORK = IPv4Network("10.96.0.0/24")


def test_random_addresses_come_from_the_upper_part_first() -> None:
    addresses, entropy = ServiceAddresses(NETWORK), Entropy(1)
    given = [int(addresses.take_any(entropy)) - int(NETWORK.network_address) for _ in range(254 - 16)]
    assert sorted(given) == list(range(17, 255))
    rest = [int(addresses.take_any(entropy)) - int(NETWORK.network_address) for _ in range(15)]
    assert sorted(rest) == list(range(2, 17))
    with pytest.raises(RangeFull, match="range is full"):
        addresses.take_any(entropy)


@pytest.mark.parametrize(
    ("address", "raised"),
    [
        ("10.96.0.1", "provided IP is already allocated"),
        ("10.96.0.9", "provided IP is already allocated"),
        ("10.96.0.0", "the provided network does not match the current range"),
        ("10.96.0.255", "the provided network does not match the current range"),
        ("192.0.2.1", "the provided network does not match the current range"),
    ],
)
def test_taken_and_out_of_range_addresses_are_rejected(address: str, raised: str) -> None:
    addresses = ServiceAddresses(NETWORK)
    addresses.take(IPv4Address("10.96.0.9"))
    with pytest.raises(AllocationError) as caught:
        addresses.take(IPv4Address(address))
    assert str(caught.value) == raised


def test_the_first_address_can_be_taken_once_with_permission() -> None:
    addresses = ServiceAddresses(NETWORK)
    addresses.take(IPv4Address("10.96.0.1"), may_take_first=True)
    with pytest.raises(AllocationError):
        addresses.take(IPv4Address("10.96.0.1"), may_take_first=True)


def test_released_addresses_and_ports_can_be_taken_again() -> None:
    addresses, ports = ServiceAddresses(NETWORK), ServicePorts(30000, 30100)
    addresses.take(IPv4Address("10.96.0.9"))
    addresses.release(IPv4Address("10.96.0.9"))
    addresses.take(IPv4Address("10.96.0.9"))
    ports.take(30001)
    ports.release(30001)
    ports.take(30001)
    ports.release(80)


def test_a_dry_run_checks_the_range_of_addresses_and_the_taken_ports() -> None:
    addresses, ports = ServiceAddresses(NETWORK), ServicePorts(30000, 30100)
    addresses.take(IPv4Address("10.96.0.9"))
    addresses.check_dry(IPv4Address("10.96.0.9"))
    with pytest.raises(AllocationError, match=r"The range of valid IPs is 10\.96\.0\.0/24"):
        addresses.check_dry(IPv4Address("192.0.2.1"))
    ports.take(30001)
    ports.take_dry(80, [])
    for port in (30001, 30002):
        with pytest.raises(AllocationError, match="provided port is already allocated"):
            ports.take_dry(port, [30002])


def test_random_ports_come_from_the_upper_part_first() -> None:
    ports, entropy = ServicePorts(30000, 30031), Entropy(1)
    assert sorted(ports.take_any(entropy) for _ in range(16)) == list(range(30016, 30032))
    assert ports.take_any(entropy) < 30016
    with pytest.raises(AllocationError, match="The range of valid ports is 30000-30031"):
        ports.take(80)


FIRST: Document = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}
BALANCER: Document = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30009}


@pytest.mark.parametrize(
    ("spec", "old", "expected"),
    [
        pytest.param(
            {"clusterIP": "a"}, None, {"clusterIP": "a", "clusterIPs": ["a"]}, id="create with clusterIP only"
        ),
        pytest.param({"clusterIPs": ["a"]}, None, {"clusterIPs": ["a"]}, id="create with clusterIPs only"),
        pytest.param({"clusterIP": "10.96.0.9"}, FIRST, FIRST, id="update with clusterIP only"),
        pytest.param({"clusterIPs": ["10.96.0.9"]}, FIRST, {}, id="update without clusterIP"),
        pytest.param(
            {**FIRST, "clusterIP": "b"},
            FIRST,
            {"clusterIP": "b", "clusterIPs": ["b"]},
            id="update with another clusterIP",
        ),
        pytest.param(
            {"clusterIP": "b", "clusterIPs": ["c"]},
            FIRST,
            {"clusterIP": "b", "clusterIPs": ["c"]},
            id="contradicting values are kept",
        ),
    ],
)
def test_normalize_cluster_ips_updates_the_list_from_cluster_ip(
    spec: Document, old: Document | None, expected: Document
) -> None:
    normalize_cluster_ips(spec, old)
    assert spec == expected


def test_fill_from_old_keeps_cluster_ips() -> None:
    spec: Document = {"type": "ClusterIP"}
    fill_from_old(spec, {"type": "ClusterIP", **FIRST})
    assert spec == {"type": "ClusterIP", **FIRST}
    spec = {"type": "ExternalName"}
    fill_from_old(spec, {"type": "ClusterIP", **FIRST})
    assert spec == {"type": "ExternalName"}


def test_fill_from_old_matches_node_ports_by_name() -> None:
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


def test_fill_from_old_keeps_the_health_check_node_port() -> None:
    spec = {field: value for field, value in BALANCER.items() if field != "healthCheckNodePort"}
    fill_from_old(spec, BALANCER)
    assert spec == BALANCER
