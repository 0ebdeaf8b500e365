"""Where a DaemonSet runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mooring.api.document import Document
from mooring.api.views.node import Node
from mooring.api.views.pod import Pod
from mooring.controllers.daemonset.plan import FitCache, NodeFit, pin_to_node, target_node, with_daemon_tolerations
from tests.controllers.batch_builders import daemon_set_view, identity, node_view, view_of

RUNS, STAYS, LEAVES = NodeFit(True, True), NodeFit(False, True), NodeFit(False, False)


def requirements(key: str, operator: str, *values: str) -> Document:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize(
    ("pod_spec", "node", "expected"),
    [
        pytest.param({}, node_view("n1"), RUNS, id="anywhere"),
        pytest.param({"nodeName": "n2"}, node_view("n1"), LEAVES, id="on one node only"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node_view("n1", labels={"disk": "ssd"}), RUNS, id="selected"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node_view("n1"), LEAVES, id="not selected"),
        pytest.param(
            requirements("z", "Gt", "3"), node_view("n1", labels={"z": "4"}), RUNS, id="as its affinity demands"
        ),
        pytest.param(
            requirements("z", "Gt", "3"),
            node_view("n1", labels={"z": "2"}),
            LEAVES,
            id="not as its affinity demands",
        ),
        pytest.param({}, node_view("n1", taints=["gpu:NoSchedule"]), STAYS, id="a taint keeps new ones away"),
        pytest.param({}, node_view("n1", taints=["gpu:NoExecute"]), LEAVES, id="a taint drives out"),
        pytest.param({}, node_view("n1", taints=["gpu:PreferNoSchedule"]), RUNS, id="a taint that only asks"),
        pytest.param(
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            node_view("n1", taints=["gpu=a:NoExecute"]),
            RUNS,
            id="tolerated",
        ),
        pytest.param({}, node_view("n1", taints=["node.kubernetes.io/unschedulable:NoSchedule"]), RUNS, id="cordoned"),
        pytest.param({}, node_view("n1", taints=["node.kubernetes.io/not-ready:NoExecute"]), RUNS, id="not ready"),
        pytest.param(
            {}, node_view("n1", taints=["node.kubernetes.io/not-ready:NoSchedule"]), STAYS, id="not ready yet"
        ),
        pytest.param(
            {},
            node_view("n1", taints=["node.kubernetes.io/network-unavailable:NoSchedule"]),
            STAYS,
            id="without a network",
        ),
        pytest.param(
            {"hostNetwork": True},
            node_view("n1", taints=["node.kubernetes.io/network-unavailable:NoSchedule"]),
            RUNS,
            id="that needs no network",
        ),
    ],
)
def test_nodes(pod_spec: Document, node: Node, expected: NodeFit) -> None:
    assert FitCache().fit(daemon_set_view(pod_spec=pod_spec), node) == expected


def test_a_verdict_holds_until_something_changes() -> None:
    memory = FitCache()
    wanted = daemon_set_view(pod_spec={"nodeSelector": {"a": "1"}})
    assert memory.fit(wanted, node_view("n1")) == LEAVES
    assert memory.fit(wanted, node_view("n1", labels={"a": "1"})) == RUNS
    assert memory.fit(wanted, node_view("n1", labels={"a": "1"}, taints=["x:NoExecute"])) == LEAVES
    assert memory.fit(daemon_set_view(generation=2), node_view("n1")) == RUNS
    memory.forget_node("n1")
    memory.forget_daemon_set(wanted.metadata.uid)
    assert memory.fit(wanted, node_view("n1")) == LEAVES


def test_tolerations_are_added_once() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    tolerations = with_daemon_tolerations({"tolerations": [{"key": "mine"}, own]})["tolerations"]
    assert len(tolerations) == 7
    assert tolerations[0] == {"key": "mine"}
    assert tolerations[1] == {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert len(with_daemon_tolerations({"hostNetwork": True})["tolerations"]) == 7


def test_a_pod_is_pinned_to_its_node() -> None:
    spec = pin_to_node({**requirements("z", "Exists"), "containers": []}, "n7")
    pod = view_of(Pod, identity("p"), spec, {})
    assert target_node(pod) == "n7"
    assert spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}]
    }


@pytest.mark.parametrize(
    ("node_name", "values", "expected"),
    [("n1", ["n2"], "n1"), ("", ["n2"], "n2"), ("", ["n2", "n3"], None), ("", [], None)],
)
def test_whose_node_it_is(node_name: str, values: Sequence[str], expected: str | None) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(values)}]}
    required = {"nodeSelectorTerms": [term] if values else []}
    spec = {
        "nodeName": node_name,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }
    assert target_node(view_of(Pod, identity("p"), spec, {})) == expected
