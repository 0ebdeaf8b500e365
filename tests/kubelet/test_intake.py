"""What the watches tell: everything, then changes; the oldest pods first."""

from __future__ import annotations

import msgspec
import pytest

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.client.http.watch import HttpEvent
from mooring.client.interface import Change
from mooring.kubelet.intake import Echoes, NodeIntake, PodIntake
from mooring.kubelet.views import KubeletPod
from tests.kubelet.play import pod, view


class Hearer:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.pods: dict[str, KubeletPod] = {}
        self.nodes: dict[str, None] = {}

    def node_changed(self, name: str, view: Node | None) -> None:
        self.heard.append(name if view is not None else f"-{name}")
        if view is None:
            self.nodes.pop(name)
        else:
            self.nodes[name] = None

    def known_node_names(self) -> list[str]:
        return [*self.nodes]

    def pod_changed(self, pod: KubeletPod) -> None:
        self.heard.append(pod.metadata.name)
        self.pods[pod.metadata.uid] = pod

    def pod_gone(self, pod: KubeletPod) -> None:
        self.heard.append(f"-{pod.metadata.name}")
        self.pods.pop(pod.metadata.uid, None)

    def latest_pods(self) -> list[KubeletPod]:
        return [*self.pods.values()]


def born(name: str, second: int, on: str = "node-0") -> KubeletPod:
    body = pod(name, on=on)
    body["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{second:02d}Z"
    return view(body, uid=f"uid-{name}")


def node(name: str) -> Node:
    return convert_as(Node, {"metadata": {"name": name}})


def test_pods_come_the_oldest_first_and_those_without_a_node_not_at_all() -> None:
    hearer = Hearer()
    PodIntake(hearer, Echoes()).replace([born("young", 9), born("old", 1), born("homeless", 0, on="")], "1")
    assert hearer.heard == ["old", "young"]


@pytest.mark.parametrize(
    ("node_name", "revision", "is_wanted"),
    [
        pytest.param("node-0", "7", True, id="somebody changed a pod with a node"),
        pytest.param("", "7", False, id="a pod that has no node yet"),
        pytest.param("node-0", "8", False, id="what we wrote ourselves"),
    ],
)
def test_what_is_not_even_read(node_name: str, revision: str, is_wanted: bool) -> None:
    echoes = Echoes()
    echoes.expect("8")
    body = pod("a", on=node_name)
    if not node_name:
        del body["spec"]["nodeName"]
    body["metadata"]["resourceVersion"] = revision
    event = HttpEvent(Change.MODIFIED, msgspec.json.encode(body))
    assert PodIntake(Hearer(), echoes).is_wanted(event) is is_wanted


def test_changes_are_handed_on() -> None:
    hearer = Hearer()
    intake = PodIntake(hearer, Echoes())
    intake.apply(Change.ADDED, born("homeless", 1, on=""))
    intake.apply(Change.ADDED, born("a", 1))
    intake.apply(Change.MODIFIED, born("a", 1))
    intake.apply(Change.DELETED, born("a", 1))
    assert hearer.heard == ["a", "a", "-a"]


def test_who_is_missing_after_a_break_is_gone() -> None:
    hearer = Hearer()
    pods, nodes = PodIntake(hearer, Echoes()), NodeIntake(hearer)
    pods.replace([born("a", 1), born("b", 2)], "1")
    nodes.replace([node("x"), node("y")], "1")
    hearer.heard.clear()
    pods.replace([born("b", 2), born("c", 3)], "2")
    nodes.replace([node("y")], "2")
    nodes.apply(Change.DELETED, node("y"))
    assert hearer.heard == ["-a", "b", "c", "-x", "y", "-y"]
