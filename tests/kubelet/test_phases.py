"""The phase of a pod follows from its containers."""

from __future__ import annotations

import pytest

from mooring.kubelet.container_record import slots_of
from mooring.kubelet.phases import phase_of
from mooring.kubelet.runtime import ContainerState, Exited, Running, Waiting
from tests.kubelet.play import Body, container, pod, view

RUNS = Running(1.0)
COMES_UP = Running(1.0, is_started=False)
DONE, FAILED = Exited(0, 1.0, 2.0), Exited(1, 1.0, 2.0)
WAITS = Waiting("ImagePullBackOff")
TWO = [container("a"), container("b")]
INIT = [container("init")]
SIDECAR = [container("proxy", restartPolicy="Always")]


@pytest.mark.parametrize(
    ("body", "states", "phase", "phase_at_the_end"),
    [
        pytest.param(pod(), {}, "Pending", "Pending", id="nothing was started"),
        pytest.param(pod(), {"main": WAITS}, "Pending", "Pending", id="an image that cannot be pulled"),
        pytest.param(pod(), {"main": RUNS}, "Running", "Running", id="it runs"),
        pytest.param(pod(containers=TWO), {"a": RUNS}, "Pending", "Pending", id="not all were started"),
        pytest.param(pod(containers=TWO), {"a": RUNS, "b": FAILED}, "Running", "Running", id="one of two runs"),
        pytest.param(pod(), {"main": FAILED}, "Running", "Failed", id="Always: it will be started again"),
        pytest.param(pod(), {"main": DONE}, "Running", "Succeeded", id="Always: after a success too"),
        pytest.param(pod(restartPolicy="OnFailure"), {"main": DONE}, "Succeeded", "Succeeded", id="OnFailure: done"),
        pytest.param(pod(restartPolicy="OnFailure"), {"main": FAILED}, "Running", "Failed", id="OnFailure: again"),
        pytest.param(pod(restartPolicy="Never"), {"main": FAILED}, "Failed", "Failed", id="Never: failed"),
        pytest.param(
            pod(restartPolicy="Never", containers=TWO), {"a": DONE, "b": FAILED}, "Failed", "Failed", id="one of two"
        ),
        pytest.param(pod(initContainers=INIT), {"init": RUNS}, "Pending", "Pending", id="an init container runs"),
        pytest.param(pod(initContainers=INIT), {"init": FAILED}, "Pending", "Pending", id="or failed, to run again"),
        pytest.param(
            pod(initContainers=INIT, restartPolicy="Never"), {"init": FAILED}, "Failed", "Failed", id="or for good"
        ),
        pytest.param(pod(initContainers=INIT), {"init": DONE, "main": RUNS}, "Running", "Running", id="it is done"),
        pytest.param(pod(initContainers=SIDECAR), {"proxy": COMES_UP}, "Pending", "Pending", id="a sidecar comes up"),
        pytest.param(
            pod(initContainers=SIDECAR), {"proxy": COMES_UP, "main": RUNS}, "Running", "Running", id="it does so again"
        ),
        pytest.param(
            pod(initContainers=SIDECAR, restartPolicy="Never"),
            {"proxy": RUNS, "main": DONE},
            *("Running", "Running"),
            id="a sidecar still runs",
        ),
        pytest.param(
            pod(initContainers=SIDECAR, restartPolicy="Never"),
            {"proxy": FAILED, "main": DONE},
            *("Succeeded", "Succeeded"),
            id="how a sidecar ended does not count",
        ),
    ],
)
def test_the_phase(body: Body, states: dict[str, ContainerState], phase: str, phase_at_the_end: str) -> None:
    one = view(body)
    slots = slots_of(one.spec)
    for name, state in states.items():
        slots[name].state = state
    assert phase_of(one.spec, [*slots.values()], is_ending=False) == phase
    assert phase_of(one.spec, [*slots.values()], is_ending=True) == phase_at_the_end
