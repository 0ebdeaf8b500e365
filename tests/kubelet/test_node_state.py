"""A node counts what is taken of it, and gives each pod an address of its own."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.kubelet.node_state import FleetNode, node_address, pod_address
from tests.kubelet.play import container, pod, view


def seat() -> FleetNode:
    node = FleetNode("node-0", 0)
    node.see(convert_as(Node, {"metadata": {"name": "node-0"}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}}))
    return node


def asking(cpu: str) -> dict[str, object]:
    return pod(containers=[container(resources={"requests": {"cpu": cpu}})])


def test_what_is_taken_is_the_sum_over_the_pods() -> None:
    node = seat()
    for uid in ("a", "b"):
        node.take(view(asking("700m"), uid=uid), {"cpu": 700})
    assert (node.used, node.pods) == ({"cpu": 1400}, 2)
    assert node.refusal(view(asking("700m"), uid="c"), {"cpu": 700}) is not None
    node.take(view(asking("100m"), uid="b"), {"cpu": 100})
    assert (node.used, node.pods) == ({"cpu": 800}, 2)
    assert node.release("a")
    assert not node.release("a")
    assert (node.used, node.pods) == ({"cpu": 100}, 1)
    assert node.refusal(view(asking("700m"), uid="c"), {"cpu": 700}) is None


def test_a_pod_that_is_here_is_not_in_its_own_way() -> None:
    node = seat()
    node.take(view(asking("1500m"), uid="a"), {"cpu": 1500})
    assert node.lacking(view(asking("2"), uid="a"), {"cpu": 2000}) is None
    assert node.lacking(view(asking("2100m"), uid="a"), {"cpu": 2100}) is not None


def test_a_port_is_taken_until_its_pod_leaves() -> None:
    node, serving = seat(), pod(containers=[container(ports=[{"containerPort": 80, "hostPort": 80}])])
    node.take(view(pod(), uid="a"), {})
    assert node.refusal(view(serving, uid="b"), {}) is None
    node.take(view(serving, uid="b"), {})
    refusal = node.refusal(view(serving, uid="c"), {})
    assert refusal is not None
    assert refusal.reason == "NodePorts"
    node.release("b")
    assert node.refusal(view(serving, uid="c"), {}) is None


def test_an_address_is_given_again_only_when_it_was_given_back() -> None:
    node = seat()
    first, second = node.new_address(), node.new_address()
    assert (first, second) == ("10.0.0.2", "10.0.0.3")
    node.give_back(first)
    assert [node.new_address(), node.new_address()] == [first, "10.0.0.4"]


def test_an_adopted_node_keeps_its_address() -> None:
    node = FleetNode("node-0", 0)
    addresses = [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "192.168.0.7"}]
    node.see(convert_as(Node, {"metadata": {"name": "node-0"}, "status": {"addresses": addresses}}))
    assert node.host_ip == "192.168.0.7"
    node.see(convert_as(Node, {"metadata": {"name": "node-0"}}))
    assert node.host_ip == "192.168.0.7"


@pytest.mark.parametrize(
    ("index", "host", "first_pod"),
    [(0, "172.16.0.1", "10.0.0.2"), (255, "172.16.1.0", "10.0.255.2"), (5_000, "172.16.19.137", "10.19.136.2")],
)
def test_nodes_have_ranges_of_their_own(index: int, host: str, first_pod: str) -> None:
    assert (node_address(index), pod_address(index, 2)) == (host, first_pod)
