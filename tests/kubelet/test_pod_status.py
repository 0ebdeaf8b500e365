"""A status is told once, and only what differs."""

from __future__ import annotations

import pytest

from mooring.kubelet.container_record import slots_of
from mooring.kubelet.pod_status import (
    PodFacts,
    rejected_status,
    revision_number,
    stamp_conditions,
    status_of,
    status_patch,
)
from mooring.kubelet.runtime import Running
from tests.kubelet.play import Body, container, pod, view

READY = {"type": "Ready", "status": "True", "lastTransitionTime": "t1"}
UNREADY = {"type": "Ready", "status": "False", "lastTransitionTime": "t2"}
RESIZE = {"type": "PodResizePending", "status": "True", "lastTransitionTime": "t1"}


@pytest.mark.parametrize(
    ("status", "written", "patch"),
    [
        pytest.param({"phase": "Running"}, {"phase": "Running"}, {}, id="nothing changed"),
        pytest.param({"phase": "Running", "hostIP": "h"}, {"hostIP": "h"}, {"phase": "Running"}, id="a new field"),
        pytest.param({"phase": "Running"}, {"phase": "Pending"}, {"phase": "Running"}, id="another value"),
        pytest.param({}, {"reason": "Evicted"}, {"reason": None}, id="a field that is told no more"),
        pytest.param({"conditions": [READY]}, {"conditions": [READY]}, {}, id="the same conditions"),
        pytest.param(
            {"conditions": [UNREADY, RESIZE]},
            {"conditions": [READY, RESIZE]},
            {"conditions": [{**UNREADY, "reason": None, "message": None}]},
            id="another condition, without what was said of it before",
        ),
        pytest.param(
            {"conditions": [READY]},
            {"conditions": [READY, RESIZE]},
            {"conditions": [{"type": "PodResizePending", "$patch": "delete"}]},
            id="a condition that is told no more",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "a", "ready": True}, {"name": "b"}]},
            {"containerStatuses": [{"name": "a", "ready": False}, {"name": "b"}]},
            {"containerStatuses": [{"name": "a", "ready": True}, {"name": "b"}]},
            id="containers are told together",
        ),
    ],
)
def test_only_what_differs_is_sent(status: Body, written: Body, patch: Body) -> None:
    assert status_patch(status, written) == patch


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    status: Body = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]}
    stamped = stamp_conditions(status, {"Ready": ("False", "t1"), "Initialized": ("True", "t1")}, "t2")
    assert stamped == {"Ready": ("True", "t2"), "Initialized": ("True", "t1")}
    assert [each["lastTransitionTime"] for each in status["conditions"]] == ["t2", "t1"]


def test_a_whole_status() -> None:
    one = view(pod(initContainers=[container("init")], ephemeralContainers=[container("shell")]), uid="u", generation=2)
    slots = slots_of(one.spec)
    slots["main"].state, slots["main"].attempt = Running(1.0), 0
    facts = PodFacts("Running", "172.16.0.1", "10.0.0.2", "t0", has_sandbox=True, resize=[dict(RESIZE)])
    status = status_of(one, [*slots.values()], facts, {})
    assert [(name, len(value)) for name, value in status.items() if isinstance(value, list)] == [
        ("hostIPs", 1),
        ("podIPs", 1),
        ("conditions", 6),
        ("initContainerStatuses", 1),
        ("containerStatuses", 1),
        ("ephemeralContainerStatuses", 1),
    ]
    texts = {name: value for name, value in status.items() if not isinstance(value, list)}
    assert texts == {
        "phase": "Running",
        "hostIP": "172.16.0.1",
        "podIP": "10.0.0.2",
        "startTime": "t0",
        "observedGeneration": 2,
    }


def test_a_rejected_pod_has_failed_and_says_why() -> None:
    assert rejected_status(view(pod()), "OutOfcpu", "Node didn't have enough resource: cpu", "t0") == {
        "phase": "Failed",
        "startTime": "t0",
        "observedGeneration": 1,
        "reason": "OutOfcpu",
        "message": "Pod was rejected: Node didn't have enough resource: cpu",
    }


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("", 0), ("x1", 0)])
def test_revisions_are_compared_as_numbers(text: str, number: int) -> None:
    assert revision_number(text) == number
