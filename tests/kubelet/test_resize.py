"""In-place resize: granted, deferred, infeasible, failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.node import Node
from mooring.client.events import EventType
from mooring.kubelet.node_state import NodeState
from mooring.kubelet.pod_actions import ContainerRecord, container_records
from mooring.kubelet.resize import PodResize
from mooring.kubelet.runtime import Running, Runtime
from mooring.kubelet.views import KubeletContainer, KubeletPod
from tests.kubelet.harness import Body, container, pod, view


class Amounts:
    """A runtime that only takes amounts, or refuses them."""

    def __init__(self, error: str = "") -> None:
        self.given: list[tuple[str, str, int]] = []
        self._error = error

    def resize(self, pod_uid: str, container: KubeletContainer, attempt: int) -> str:
        self.given.append((container.name, str(container.resources.requests["cpu"]), attempt))
        return self._error


class ResizeHarness:
    """A resize, its runtime and its events."""

    def __init__(self, error: str = "") -> None:
        self.runtime = Amounts(error)
        self.events: list[tuple[EventType, str, str]] = []
        self.resizing = PodResize(cast(Runtime, self.runtime), lambda pod, *event: self.events.append(event))
        self.resizing.grant(requesting("1"))

    def consider(self, wanted: KubeletPod, node: NodeState) -> list[ContainerRecord]:
        records = container_records(wanted.spec)
        for record in records.values():
            record.attempt, record.state = 3, Running(0.0)
        return self.resizing.consider(wanted, node, records.values())


def requesting(cpu: str, generation: int = 1, policies: Sequence[Body] = ()) -> KubeletPod:
    main = container(resources={"requests": {"cpu": cpu}}, resizePolicy=list(policies))
    return view(pod(containers=[main]), generation=generation)


def node_of_four() -> NodeState:
    """Half of it is taken."""
    node = NodeState("node-0", 0)
    node.observe(
        convert_as(Node, {"metadata": {"name": "node-0"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}})
    )
    node.reserve(requesting("1"), {"cpu": 1000})
    node.reserve(view(pod("other"), uid="other"), {"cpu": 1000})
    return node


@pytest.mark.parametrize(
    ("cpu", "granted", "reason", "events"),
    [
        pytest.param("1", "1", "", [], id="the same as before"),
        pytest.param("2", "2", "", ["ResizeStarted", "ResizeCompleted"], id="what there is room for"),
        pytest.param("3500m", "1", "Deferred", ["ResizeDeferred"], id="what others have now"),
        pytest.param("5", "1", "Infeasible", ["ResizeInfeasible"], id="what the node has not"),
    ],
)
def test_a_resize(cpu: str, granted: str, reason: str, events: list[str]) -> None:
    harness, node = ResizeHarness(), node_of_four()
    for _ in range(2):  # the second time nothing changes and nothing is reported
        assert harness.consider(requesting(cpu, generation=2), node) == []
    assert harness.resizing.allocated["main"].requests == {"cpu": granted}
    assert harness.runtime.given == ([("main", granted, 3)] if granted != "1" else [])
    assert [event for _, event, _ in harness.events] == events
    pending = harness.resizing.pending or {}
    assert pending.get("reason", "") == reason
    if reason:
        assert (pending["type"], pending["status"], pending["observedGeneration"]) == ("PodResizePending", "True", 2)
        assert pending["message"].startswith("Node didn't have enough resource: cpu, requested: ")


def test_an_ephemeral_container_is_not_a_resize() -> None:
    harness = ResizeHarness()
    main = container(resources={"requests": {"cpu": "1"}})
    debugged = view(pod(containers=[main], ephemeralContainers=[{"name": "debugger", "image": "x"}]), generation=2)
    assert harness.consider(debugged, node_of_four()) == []
    assert (harness.events, harness.runtime.given) == ([], [])


def test_events_tell_all_amounts() -> None:
    harness = ResizeHarness()
    harness.consider(requesting("2", generation=7), node_of_four())
    amounts = '{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}],"generation":7}'
    assert harness.events == [
        ("Normal", "ResizeStarted", f"Pod resize started: {amounts}"),
        ("Normal", "ResizeCompleted", f"Pod resize completed: {amounts}"),
    ]


def test_limits_that_the_runtime_cannot_set_are_a_condition_until_a_later_resize() -> None:
    harness, node = ResizeHarness(error="memory.max cannot be 1: device or resource busy"), node_of_four()
    harness.consider(requesting("2", generation=2), node)
    (condition,) = harness.resizing.conditions
    assert (condition["type"], condition["reason"]) == ("PodResizeInProgress", "Error")
    assert condition["message"] == "memory.max cannot be 1: device or resource busy"
    assert [(type, reason) for type, reason, _ in harness.events] == [
        ("Normal", "ResizeStarted"),
        ("Warning", "ResizeError"),
    ]
    harness.runtime._error = ""
    harness.consider(requesting("1500m", generation=3), node)
    assert harness.resizing.conditions == []


@pytest.mark.parametrize(
    ("resource", "policy", "starts_again"),
    [
        pytest.param("cpu", "NotRequired", False, id="not needed"),
        pytest.param("cpu", "RestartContainer", True, id="asked for"),
        pytest.param("memory", "RestartContainer", False, id="asked for another resource"),
    ],
)
def test_a_container_is_started_again_if_its_policy_asks_for_that(
    resource: str, policy: str, starts_again: bool
) -> None:
    harness = ResizeHarness()
    wanted = requesting("2", generation=2, policies=[{"resourceName": resource, "restartPolicy": policy}])
    assert bool(harness.consider(wanted, node_of_four())) is starts_again
    assert bool(harness.runtime.given) is not starts_again
