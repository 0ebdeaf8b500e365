"""Which pods nobody will ever take away."""

from __future__ import annotations

import pytest

from mooring.api.views.meta import ObjectMeta
from mooring.api.views.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from mooring.api.views.pod import Pod, PodSpec, PodStatus
from mooring.controllers.podgc_plan import is_terminated, out_of_service, surplus, unscheduled


def pod(
    name: str, phase: str = "Running", *, created: str = "2026-01-01T00:00:00Z", reason: str = "", on: str = ""
) -> Pod:
    metadata = ObjectMeta(name=name, creation_timestamp=created)
    return Pod(metadata=metadata, spec=PodSpec(node_name=on), status=PodStatus(phase=phase, reason=reason))


def names(pods: list[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


TERMINATED = [
    pod("young", "Succeeded", created="2026-01-03T00:00:00Z"),
    pod("b-old", "Failed", created="2026-01-01T00:00:00Z"),
    pod("a-old", "Succeeded", created="2026-01-01T00:00:00Z"),
    pod("evicted", "Failed", created="2026-01-04T00:00:00Z", reason="Evicted"),
]


@pytest.mark.parametrize(
    ("threshold", "gone"),
    [
        pytest.param(4, [], id="up to the threshold nobody"),
        pytest.param(3, ["evicted"], id="evicted ones first"),
        pytest.param(1, ["evicted", "a-old", "b-old"], id="then the oldest, then by name"),
        pytest.param(0, [], id="no threshold: nobody"),
    ],
)
def test_terminated_pods_above_the_threshold(threshold: int, gone: list[str]) -> None:
    assert names(surplus(TERMINATED, threshold)) == gone


@pytest.mark.parametrize(
    ("phase", "is_one"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True)],
)
def test_what_is_terminated(phase: str, is_one: bool) -> None:
    assert is_terminated(pod("p", phase)) is is_one


def node(ready: str, *taints: str) -> Node:
    return Node(
        spec=NodeSpec(taints=tuple(Taint(key=key, effect="NoExecute") for key in taints)),
        status=NodeStatus(conditions=(NodeCondition(type="Ready", status=ready),)),
    )


NODES = {
    "lost": node("Unknown", "node.kubernetes.io/out-of-service"),
    "back": node("True", "node.kubernetes.io/out-of-service"),
    "silent": node("Unknown"),
}


def test_pods_on_a_node_out_of_service_and_not_ready() -> None:
    pods = [pod(f"on-{name}", on=name) for name in (*NODES, "unheard-of", "")]
    assert names(out_of_service(pods, NODES.get)) == ["on-lost"]


def test_pods_without_a_node() -> None:
    assert names(unscheduled([pod("pending"), pod("placed", on="n1")])) == ["pending"]
