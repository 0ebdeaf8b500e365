"""A node: admission, resources in use, addresses."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.resources import fit_filter_requests, node_allocatable
from mooring.api.views.node import Node
from mooring.kubelet.node_state import (
    HostPort,
    NodeState,
    NodeUsage,
    Rejection,
    check_admission,
    host_ports_of,
    node_address,
    pod_address,
)
from tests.kubelet.harness import Body, container, pod, view

AMOUNTS = {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "10Gi", "pods": "3", "example.com/gpu": "1"}


def node(**changes: object) -> Node:
    body: Body = {
        "metadata": {"name": "node-0", "labels": {"kubernetes.io/os": "linux", "zone": "a"}},
        "status": {"allocatable": AMOUNTS},
        **changes,
    }
    return convert_as(Node, body)


def wants(**requests: str) -> Body:
    amounts = {name.replace("gpu", "example.com/gpu").replace("_", "-"): amount for name, amount in requests.items()}
    return pod(containers=[container(resources={"requests": amounts})])


def out_of(name: str, requested: int, used: int, capacity: int) -> Rejection:
    text = f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
    return Rejection(f"OutOf{name}", text)


AFFINITY = Rejection("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
PORTS = Rejection("NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports")
TAINTS = Rejection(
    "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
)
TAINTED = node(spec={"taints": [{"key": "maintenance", "effect": "NoExecute"}]})
ONLY_PREFERRED = node(spec={"taints": [{"key": "maintenance", "effect": "NoSchedule"}]})
PORT_80 = pod(containers=[container(ports=[{"containerPort": 80, "hostPort": 80}])])


@pytest.mark.parametrize(
    ("body", "one", "used", "pods", "ports", "expected"),
    [
        pytest.param(pod(), node(), {}, 0, (), None, id="an ordinary pod"),
        pytest.param(wants(cpu="2"), node(), {}, 0, (), None, id="all there is"),
        pytest.param(wants(cpu="500m"), node(), {"cpu": 1600}, 1, (), out_of("cpu", 500, 1600, 2000), id="cpu"),
        pytest.param(
            wants(memory="1Gi"), node(), {"memory": 1}, 1, (), out_of("memory", 1 << 30, 1, 1 << 30), id="memory"
        ),
        pytest.param(
            wants(ephemeral_storage="20Gi"),
            node(),
            *({}, 0, ()),
            out_of("ephemeral-storage", 20 << 30, 0, 10 << 30),
            id="storage",
        ),
        pytest.param(wants(gpu="2"), node(), {}, 0, (), out_of("example.com/gpu", 2, 0, 1), id="devices"),
        pytest.param(wants(cpu="9", memory="9Gi"), node(), {}, 3, (), out_of("pods", 1, 3, 3), id="pods go first"),
        pytest.param(
            pod(containers=[container(resources={"requests": {"example.com/licence": "1"}})]),
            node(),
            *({}, 0, (), None),
            id="what the node has never heard of is not counted",
        ),
        pytest.param(pod(nodeSelector={"zone": "b"}), node(), {}, 0, (), AFFINITY, id="another node was wanted"),
        pytest.param(pod(nodeSelector={"zone": "a"}), node(), {}, 0, (), None, id="this node was wanted"),
        pytest.param(PORT_80, node(), {}, 1, [("TCP", 80, "")], PORTS, id="a port is taken"),
        pytest.param(PORT_80, node(), {}, 1, [("UDP", 80, "")], None, id="of the other protocol"),
        pytest.param(PORT_80, node(), {}, 1, [("TCP", 80, "10.0.0.1")], PORTS, id="on one address only"),
        pytest.param(pod(), TAINTED, {}, 0, (), TAINTS, id="a taint that evicts"),
        pytest.param(pod(tolerations=[{"operator": "Exists"}]), TAINTED, {}, 0, (), None, id="tolerated"),
        pytest.param(pod(), ONLY_PREFERRED, {}, 0, (), None, id="a taint that only keeps away"),
        pytest.param(
            pod(os={"name": "windows"}),
            node(),
            *({}, 0, ()),
            Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"),
            id="another operating system",
        ),
        pytest.param(
            pod(labels={"kubernetes.io/os": "windows"}),
            node(),
            *({}, 0, ()),
            Rejection(
                "PodOSSelectorNodeLabelDoesNotMatch",
                "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
            ),
            id="another operating system, by label",
        ),
    ],
)
def test_the_admission_of_a_pod(
    body: Body, one: Node, used: dict[str, int], pods: int, ports: list[HostPort], expected: Rejection | None
) -> None:
    room = NodeUsage(node_allocatable(one), used, pods, ports)
    assert check_admission(view(body), fit_filter_requests(view(body)), one, room) == expected


def test_host_ports_of_containers_that_stay_are_in_use() -> None:
    def with_port(name: str, port: int, **changes: str) -> Body:
        return {**container(name, ports=[{"containerPort": 1, "hostPort": port}]), **changes}

    body = pod(
        containers=[with_port("main", 80), container("none", ports=[{"containerPort": 9}])],
        initContainers=[with_port("init", 81), with_port("proxy", 82, restartPolicy="Always")],
    )
    assert host_ports_of(view(body)) == (("TCP", 82, ""), ("TCP", 80, ""))


def seat() -> NodeState:
    node = NodeState("node-0", 0)
    node.observe(
        convert_as(Node, {"metadata": {"name": "node-0"}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}})
    )
    return node


def requesting(cpu: str) -> dict[str, object]:
    return pod(containers=[container(resources={"requests": {"cpu": cpu}})])


def test_what_is_taken_is_the_sum_over_the_pods() -> None:
    node = seat()
    for uid in ("a", "b"):
        node.reserve(view(requesting("700m"), uid=uid), {"cpu": 700})
    assert (node.used, node.pods) == ({"cpu": 1400}, 2)
    assert node.rejection(view(requesting("700m"), uid="c"), {"cpu": 700}) is not None
    node.reserve(view(requesting("100m"), uid="b"), {"cpu": 100})
    assert (node.used, node.pods) == ({"cpu": 800}, 2)
    assert node.release("a")
    assert not node.release("a")
    assert (node.used, node.pods) == ({"cpu": 100}, 1)
    assert node.rejection(view(requesting("700m"), uid="c"), {"cpu": 700}) is None


def test_a_pod_that_is_here_is_not_in_its_own_way() -> None:
    node = seat()
    node.reserve(view(requesting("1500m"), uid="a"), {"cpu": 1500})
    assert node.insufficient(view(requesting("2"), uid="a"), {"cpu": 2000}) is None
    assert node.insufficient(view(requesting("2100m"), uid="a"), {"cpu": 2100}) is not None


def test_a_port_is_taken_until_its_pod_leaves() -> None:
    node, serving = seat(), pod(containers=[container(ports=[{"containerPort": 80, "hostPort": 80}])])
    node.reserve(view(pod(), uid="a"), {})
    assert node.rejection(view(serving, uid="b"), {}) is None
    node.reserve(view(serving, uid="b"), {})
    expected = node.rejection(view(serving, uid="c"), {})
    assert expected is not None
    assert expected.reason == "NodePorts"
    node.release("b")
    assert node.rejection(view(serving, uid="c"), {}) is None


def test_an_address_is_given_again_only_when_it_was_given_back() -> None:
    node = seat()
    first, second = node.new_address(), node.new_address()
    assert (first, second) == ("10.0.0.2", "10.0.0.3")
    node.release_address(first)
    assert [node.new_address(), node.new_address()] == [first, "10.0.0.4"]


def test_an_adopted_node_keeps_its_address() -> None:
    node = NodeState("node-0", 0)
    addresses = [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "192.168.0.7"}]
    node.observe(convert_as(Node, {"metadata": {"name": "node-0"}, "status": {"addresses": addresses}}))
    assert node.host_ip == "192.168.0.7"
    node.observe(convert_as(Node, {"metadata": {"name": "node-0"}}))
    assert node.host_ip == "192.168.0.7"


@pytest.mark.parametrize(
    ("index", "host", "first_pod"),
    [(0, "172.16.0.1", "10.0.0.2"), (255, "172.16.1.0", "10.0.255.2"), (5_000, "172.16.19.137", "10.19.136.2")],
)
def test_nodes_have_ranges_of_their_own(index: int, host: str, first_pod: str) -> None:
    assert (node_address(index), pod_address(index, 2)) == (host, first_pod)
