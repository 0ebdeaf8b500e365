"""Other amounts for a running pod: granted, deferred, or never."""

from __future__ import annotations

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.kubelet.nodes import FleetNode
from mooring.kubelet.resizing import Resizing
from mooring.kubelet.views import KubeletPod
from tests.kubelet.play import container, pod, view


def asking(cpu: str, generation: int = 1) -> KubeletPod:
    return view(pod(containers=[container(resources={"requests": {"cpu": cpu}})]), generation=generation)


@pytest.mark.parametrize(
    ("cpu", "is_granted", "reason"),
    [
        pytest.param("1", False, "", id="the same as before"),
        pytest.param("2", True, "", id="what there is room for"),
        pytest.param("3500m", False, "Deferred", id="what others have now"),
        pytest.param("5", False, "Infeasible", id="what the node has not"),
    ],
)
def test_a_resize(cpu: str, is_granted: bool, reason: str) -> None:
    node = FleetNode("node-0", 0)
    node.see(convert_as(Node, {"metadata": {"name": "node-0"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}))
    node.take(asking("1"), {"cpu": 1000})
    node.take(view(pod("other"), uid="other"), {"cpu": 1000})
    resizing = Resizing()
    resizing.grant(asking("1"))
    assert resizing.consider(asking(cpu, generation=2), node) is is_granted
    assert resizing.allocated["main"].requests == {"cpu": cpu if is_granted else "1"}
    pending = resizing.pending or {}
    assert pending.get("reason", "") == reason
    if reason:
        assert (pending["type"], pending["status"], pending["observedGeneration"]) == ("PodResizePending", "True", 2)
        assert pending["message"].startswith("Node didn't have enough resource: cpu, requested: ")
