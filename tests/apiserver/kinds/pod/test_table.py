"""What is printed of pods. All rows were printed by kube-apiserver v1.36.4, too."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.apiserver.kinds.pod.strategy import POD_TABLE

NOW_S = 1_000_000.0
EARLIER, LATER = "1970-01-12T13:00:00Z", "1970-01-12T13:30:00Z"
"""46 and 16 minutes before now."""
RUNNING: Document = {"running": {"startedAt": EARLIER}}
WITH_SIDECAR: Document = {
    "initContainers": [{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}]
}


def container(name: str, state: Document | None = None, **more: Any) -> Document:
    finished = more.pop("last", None)
    last = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": finished}}} if finished else {}
    return {"name": name, "ready": False, "restartCount": 0, "state": state or {}, **last, **more}


def ended(code: int, reason: str = "", signal: int = 0) -> Document:
    found = {"exitCode": code, "reason": reason, "signal": signal}
    return {"terminated": {name: value for name, value in found.items() if value or name == "exitCode"}}


def waiting(reason: str) -> Document:
    return {"waiting": {"reason": reason}}


def row(spec: Document, status: Document, **metadata: Any) -> Document:
    containers = [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]
    pod = {
        "metadata": {"name": "p", "creationTimestamp": "1970-01-12T13:46:00Z", **metadata},
        "spec": {"containers": containers, **spec},
        "status": status,
    }
    return POD_TABLE.row(pod, NOW_S)


READY_CONDITION = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("spec", "status", "ready", "text", "restarts"),
    [
        pytest.param({}, {"phase": "Pending"}, "0/2", "Pending", "0", id="its phase, if nothing else is known"),
        pytest.param(
            {}, {"phase": "Failed", "reason": "Evicted"}, "0/2", "Evicted", "0", id="a reason is more than a phase"
        ),
        pytest.param(
            {},
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "0/2",
            "SchedulingGated",
            "0",
            id="held back by a gate",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "containerStatuses": [
                    container("c", RUNNING, ready=True, restartCount=3, last=EARLIER),
                    container("d", RUNNING, ready=True, restartCount=2, last=LATER),
                ],
            },
            "2/2",
            "Running",
            "5 (16m ago)",
            id="restarts add up, the last one counts",
        ),
        pytest.param(
            {},
            {"phase": "Running", "containerStatuses": [container("c", waiting("CrashLoopBackOff"), restartCount=7)]},
            "0/2",
            "CrashLoopBackOff",
            "7",
            id="a container that waits says why",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "conditions": READY_CONDITION,
                "containerStatuses": [container("c", ended(0, "Completed")), container("d", RUNNING, ready=True)],
            },
            "1/2",
            "Running",
            "0",
            id="one is done, the other one runs",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "containerStatuses": [container("c", ended(0, "Completed")), container("d", RUNNING, ready=True)],
            },
            "1/2",
            "NotReady",
            "0",
            id="one is done, the other one runs, but the pod is not ready",
        ),
        pytest.param(
            {},
            {
                "phase": "Running",
                "containerStatuses": [container("c", ended(0, "Completed")), container("d", ended(3, "Oops"))],
            },
            "0/2",
            "Oops",
            "0",
            id="one is done, the other one failed",
        ),
        pytest.param(
            {},
            {"phase": "Failed", "containerStatuses": [container("c", ended(2)), container("d", ended(0, "", 9))]},
            "0/2",
            "ExitCode:2",
            "0",
            id="the first container has the last word",
        ),
        pytest.param(
            {}, {"phase": "Failed", "containerStatuses": [container("c", ended(1, "", 9))]}, "0/2", "Signal:9", "0"
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Pending",
                "initContainerStatuses": [container("i", ended(1, "Error"), restartCount=4, last=EARLIER)],
                "containerStatuses": [container("c", waiting("PodInitializing"))],
            },
            "0/3",
            "Init:Error",
            "4 (46m ago)",
            id="an init container failed",
        ),
        pytest.param(
            WITH_SIDECAR,
            {"phase": "Pending", "initContainerStatuses": [container("i", ended(1))]},
            "0/3",
            "Init:ExitCode:1",
            "0",
        ),
        pytest.param(
            WITH_SIDECAR,
            {"phase": "Pending", "initContainerStatuses": [container("i", ended(1, "", 11))]},
            "0/3",
            "Init:Signal:11",
            "0",
        ),
        pytest.param(
            WITH_SIDECAR,
            {"phase": "Pending", "initContainerStatuses": [container("i", waiting("PodInitializing"))]},
            "0/3",
            "Init:0/2",
            "0",
            id="still busy with the first of two",
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    container("i", ended(0, "Completed"), restartCount=4, last=EARLIER),
                    container("s", waiting("CrashLoopBackOff"), restartCount=2, last=LATER),
                ],
            },
            "0/3",
            "Init:CrashLoopBackOff",
            "6 (16m ago)",
            id="a sidecar does not start",
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Running",
                "initContainerStatuses": [
                    container("i", ended(0, "Completed"), restartCount=4, last=EARLIER),
                    container("s", RUNNING, restartCount=2, last=LATER, ready=True, started=True),
                ],
                "containerStatuses": [container("c", RUNNING, ready=True, restartCount=1)],
            },
            "2/3",
            "Running",
            "3 (16m ago)",
            id="only restarts of sidecars count once it runs",
        ),
        pytest.param(
            WITH_SIDECAR,
            {
                "phase": "Running",
                "conditions": [{"type": "Initialized", "status": "True"}],
                "initContainerStatuses": [
                    container("i", ended(0, "Completed")),
                    container("s", RUNNING, started=False),
                ],
                "containerStatuses": [container("c", RUNNING, ready=True, restartCount=1)],
            },
            "1/3",
            "Init:1/2",
            "1",
            id="initialized, although a sidecar starts again",
        ),
    ],
)
def test_status(spec: Document, status: Document, ready: str, text: str, restarts: str) -> None:
    assert row(spec, status)["cells"][:5] == ["p", ready, text, restarts, "40s"]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ],
)
def test_status_of_a_deleted_pod(status: Document, text: str) -> None:
    assert row({}, status, deletionTimestamp=LATER)["cells"][2] == text


def test_wide_columns() -> None:
    status: Document = {
        "phase": "Running",
        "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        "nominatedNodeName": "n2",
        "conditions": [{"type": "a/b", "status": "True"}, {"type": "a/c", "status": "False"}],
    }
    gates = [{"conditionType": "a/b"}, {"conditionType": "a/c"}, {"conditionType": "a/d"}]
    assert row({"readinessGates": gates, "nodeName": "n1"}, status)["cells"][5:] == ["10.0.0.1", "n1", "n2", "1/3"]
    assert row({}, {})["cells"][5:] == ["<none>"] * 4


@pytest.mark.parametrize(
    ("phase", "condition"),
    [("Succeeded", "The pod has completed successfully."), ("Failed", "The pod failed.")],
)
def test_pods_that_are_done_are_marked(phase: str, condition: str) -> None:
    found = row({}, {"phase": phase})["conditions"]
    assert found == [{"type": "Completed", "status": "True", "reason": phase, "message": condition}]
    assert "conditions" not in row({}, {"phase": "Running"})
