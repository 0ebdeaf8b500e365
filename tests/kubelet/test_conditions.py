"""The conditions of a pod, in the kubelet's words."""

from __future__ import annotations

import pytest

from mooring.kubelet.conditions import OWN_TYPES, conditions_of
from mooring.kubelet.container_record import slots_of
from mooring.kubelet.runtime import ContainerState, Exited, Running
from tests.kubelet.play import Body, container, pod, view

RUNS, UNREADY = Running(1.0), Running(1.0, is_ready=False)
DONE, FAILED = Exited(0, 1.0, 2.0), Exited(1, 1.0, 2.0)
GATED = pod(readinessGates=[{"conditionType": "example.com/load-balanced"}])
INIT = pod(initContainers=[container("init"), container("proxy", restartPolicy="Always")])
TWO = pod(containers=[container("a"), container("b")])
COMPLETED = {"status": "False", "reason": "PodCompleted"}


def told(body: Body, states: dict[str, ContainerState], phase: str, conditions: Body | None = None) -> dict[str, Body]:
    known = [{"type": type, "status": status} for type, status in (conditions or {}).items()]
    one = view({**body, "status": {"conditions": known}}, generation=3)
    slots = slots_of(one.spec)
    for name, state in states.items():
        slots[name].state = state
    found = conditions_of(one, [*slots.values()], phase, has_sandbox=bool(states))
    assert [each["type"] for each in found] == [*OWN_TYPES]
    assert {each.pop("observedGeneration") for each in found} == {3}
    return {each.pop("type"): each for each in found}


@pytest.mark.parametrize(
    ("body", "states", "phase", "type", "condition"),
    [
        pytest.param(pod(), {}, "Pending", "PodReadyToStartContainers", {"status": "False"}, id="no sandbox"),
        pytest.param(pod(), {"main": RUNS}, "Running", "PodReadyToStartContainers", {"status": "True"}, id="a sandbox"),
        pytest.param(pod(), {}, "Pending", "PodScheduled", {"status": "True"}, id="it was scheduled"),
        pytest.param(pod(), {}, "Pending", "Initialized", {"status": "True"}, id="nothing to initialise"),
        pytest.param(
            INIT,
            {},
            "Pending",
            "Initialized",
            {
                "status": "False",
                "reason": "ContainersNotInitialized",
                "message": "containers with incomplete status: [init proxy]",
            },
            id="not initialised",
        ),
        pytest.param(INIT, {"init": DONE, "proxy": RUNS}, "Pending", "Initialized", {"status": "True"}, id="done"),
        pytest.param(
            INIT,
            {"init": DONE, "proxy": FAILED, "main": RUNS},
            *("Running", "Initialized", {"status": "True"}),
            id="never taken back",
        ),
        pytest.param(
            pod(),
            {"main": DONE},
            "Succeeded",
            "Initialized",
            {"status": "True", "reason": "PodCompleted"},
            id="completed",
        ),
        pytest.param(
            TWO,
            {"a": RUNS, "b": UNREADY},
            "Running",
            "Ready",
            {"status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [b]"},
            id="one is not ready",
        ),
        pytest.param(TWO, {"a": RUNS, "b": RUNS}, "Running", "ContainersReady", {"status": "True"}, id="all are"),
        pytest.param(
            INIT,
            {"init": DONE, "main": RUNS},
            "Running",
            "ContainersReady",
            {"status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [proxy]"},
            id="a sidecar counts",
        ),
        pytest.param(pod(), {"main": DONE}, "Succeeded", "Ready", COMPLETED, id="a pod that is done"),
        pytest.param(
            pod(), {"main": FAILED}, "Failed", "Ready", {"status": "False", "reason": "PodFailed"}, id="that failed"
        ),
        pytest.param(
            GATED,
            {"main": RUNS},
            "Running",
            "Ready",
            {
                "status": "False",
                "reason": "ReadinessGatesNotReady",
                "message": 'corresponding condition of pod readiness gate "example.com/load-balanced" does not exist.',
            },
            id="a gate is missing",
        ),
        pytest.param(GATED, {"main": RUNS}, "Running", "ContainersReady", {"status": "True"}, id="not theirs to say"),
    ],
)
def test_a_condition(body: Body, states: dict[str, ContainerState], phase: str, type: str, condition: Body) -> None:
    assert told(body, states, phase)[type] == condition


@pytest.mark.parametrize(
    ("status", "condition"),
    [
        ("True", {"status": "True"}),
        (
            "False",
            {
                "status": "False",
                "reason": "ReadinessGatesNotReady",
                "message": 'the status of pod readiness gate "example.com/load-balanced" is not "True", but False',
            },
        ),
    ],
)
def test_a_readiness_gate_says_so(status: str, condition: Body) -> None:
    assert told(GATED, {"main": RUNS}, "Running", {"example.com/load-balanced": status})["Ready"] == condition
