"""NodePorts: a host port belongs to one pod of a node. (Which ports conflict is reported in cache/test_ports.)"""

from __future__ import annotations

import pytest

from mooring.api.views.pod import Pod
from mooring.scheduler.framework.plugin import SKIP
from mooring.scheduler.plugins.node_ports import NodePorts
from tests.builders import node, pod
from tests.scheduler.harness import engine_of, rejected_by, settle

TEXT = ("node(s) didn't have free ports for the requested pod ports",)


@pytest.mark.parametrize(
    ("wanting", "rejecting"),
    [
        (pod(ports=["80"]), ["web"]),
        (pod(ports=["53/UDP"]), ["dns"]),
        (pod(ports=["443", "80"]), ["web"]),
        (pod(ports=["10.0.0.2:80"]), []),
        (pod(ports=["8080"]), []),
    ],
)
def test_nodes_where_the_port_is_taken(wanting: Pod, rejecting: list[str]) -> None:
    engine = engine_of(
        node("free"),
        node("web"),
        node("dns"),
        pod("web", ports=["10.0.0.1:80"], on="web"),
        pod("dns", ports=["53/UDP"], on="dns"),
    )
    assert rejected_by(engine, NodePorts, wanting) == dict.fromkeys(rejecting, TEXT)


def test_pods_without_host_ports_are_none_of_its_business() -> None:
    assert rejected_by(engine_of(node("n1")), NodePorts, pod()) is SKIP


def test_each_node_serves_one_pod_of_a_port() -> None:
    engine = engine_of(node("n1"), node("n2"))
    assert sorted(map(str, settle(engine, *(pod(name, ports=["80"]) for name in "abc")))) == ["None", "n1", "n2"]
