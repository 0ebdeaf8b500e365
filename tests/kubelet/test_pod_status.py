"""Phase, conditions, container statuses, and the patch that writes them."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import NO_RESOURCES, ResourceRequirements
from mooring.kubelet.pod_actions import ContainerRecord, container_records
from mooring.kubelet.pod_status import (
    OWN_TYPES,
    PodFacts,
    conditions_of,
    container_id,
    container_status,
    image_id,
    phase_of,
    rejected_status,
    revision_number,
    stamp_conditions,
    status_of,
    status_patch,
)
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletContainer, VolumeMount
from tests.kubelet.harness import Body, container, pod, view

RUNS = Running(1.0)
COMES_UP = Running(1.0, is_started=False)
DONE, FAILED = Exited(0, 1.0, 2.0), Exited(1, 1.0, 2.0)
WAITS = Waiting("ImagePullBackOff")
TWO = [container("a"), container("b")]
INIT = [container("init")]
SIDECAR = [container("proxy", restartPolicy="Always")]
FIRST_END = Exited(1, 0.5, 60.0, "Error")
SECOND_END = Exited(0, 70.0, 120.0, "Completed")
STARTED = "1970-01-01T00:01:10Z"
UNREADY = Running(1.0, is_ready=False)
GATED = pod(readinessGates=[{"conditionType": "example.com/load-balanced"}])
INIT_AND_SIDECAR_POD = pod(initContainers=[container("init"), container("proxy", restartPolicy="Always")])
TWO_CONTAINER_POD = pod(containers=[container("a"), container("b")])
COMPLETED = {"status": "False", "reason": "PodCompleted"}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "t1"}
NOT_READY = {"type": "Ready", "status": "False", "lastTransitionTime": "t2"}
RESIZE = {"type": "PodResizePending", "status": "True", "lastTransitionTime": "t1"}


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
    records = container_records(one.spec)
    for name, state in states.items():
        records[name].state = state
    assert phase_of(one.spec, [*records.values()], is_ending=False) == phase
    assert phase_of(one.spec, [*records.values()], is_ending=True) == phase_at_the_end


def record(
    state: ContainerState | None, attempt: int = 0, role: Role = Role.CONTAINER, **fields: object
) -> ContainerRecord:
    one = ContainerRecord(KubeletContainer(name="main", image="example.com/web:1"), role)
    one.state, one.attempt = state, attempt
    for name, value in fields.items():
        setattr(one, name, value)
    return one


def reported_status(one: ContainerRecord) -> Body:
    return container_status(one, "u", is_initializing=False, resources=NO_RESOURCES)


def ended(attempt: int, code: int, reason: str, started: str, finished: str) -> Body:
    return {
        "exitCode": code,
        "reason": reason,
        "startedAt": f"1970-01-01T00:0{started}Z",
        "finishedAt": f"1970-01-01T00:0{finished}Z",
        "containerID": container_id("u", "main", attempt),
    }


FIRST_TOLD = ended(0, 1, "Error", "0:00", "1:00")
SECOND_TOLD = ended(1, 0, "Completed", "1:10", "2:00")


@pytest.mark.parametrize(
    ("one", "state", "last", "restarts", "is_ready", "is_started"),
    [
        pytest.param(record(None, -1), {"waiting": {"reason": "ContainerCreating"}}, {}, 0, False, False, id="new"),
        pytest.param(
            record(Waiting("ErrImagePull", "not found")),
            {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
            *({}, 0, False, False),
            id="waiting",
        ),
        pytest.param(record(Running(70.0)), {"running": {"startedAt": STARTED}}, {}, 0, True, True, id="running"),
        pytest.param(
            record(Running(70.0, is_ready=False)),
            {"running": {"startedAt": STARTED}},
            *({}, 0, False, True),
            id="running, but not ready",
        ),
        pytest.param(
            record(Running(70.0, is_started=False)),
            {"running": {"startedAt": STARTED}},
            *({}, 0, False, False),
            id="running, but not up",
        ),
        pytest.param(record(FIRST_END), {"terminated": FIRST_TOLD}, {}, 0, False, False, id="ended"),
        pytest.param(
            record(FIRST_END, waiting=Waiting("CrashLoopBackOff", "later")),
            {"waiting": {"reason": "CrashLoopBackOff", "message": "later"}},
            {"terminated": FIRST_TOLD},
            *(0, False, False),
            id="ended, and not started again yet",
        ),
        pytest.param(
            record(FIRST_END, 1, is_starting=True),
            {"terminated": FIRST_TOLD},
            *({}, 0, False, False),
            id="ended, and just being started again",
        ),
        pytest.param(
            record(Waiting("ErrImagePull"), 1, last=FIRST_END),
            {"waiting": {"reason": "ErrImagePull"}},
            {"terminated": FIRST_TOLD},
            *(0, False, False),
            id="to run again, and waiting",
        ),
        pytest.param(
            record(Running(70.0), 1, last=FIRST_END),
            {"running": {"startedAt": STARTED}},
            {"terminated": FIRST_TOLD},
            *(1, True, True),
            id="running again",
        ),
        pytest.param(
            record(SECOND_END, 1, last=FIRST_END),
            {"terminated": SECOND_TOLD},
            {"terminated": FIRST_TOLD},
            *(1, False, False),
            id="ended again",
        ),
        pytest.param(
            record(Exited(0, 0.5, 60.0, "Error"), role=Role.INIT),
            {"terminated": {**FIRST_TOLD, "exitCode": 0}},
            *({}, 0, True, False),
            id="an init container that is done is ready",
        ),
        pytest.param(
            record(Running(70.0), role=Role.INIT),
            {"running": {"startedAt": STARTED}},
            *({}, 0, False, True),
            id="one that runs is not",
        ),
    ],
)
def test_the_states(
    one: ContainerRecord, state: Body, last: Body, restarts: int, is_ready: bool, is_started: bool
) -> None:
    status = reported_status(one)
    assert status["state"] == state
    assert status["lastState"] == last
    assert (status["restartCount"], status["ready"], status["started"]) == (restarts, is_ready, is_started)


def test_only_what_has_run_has_an_id() -> None:
    assert "containerID" not in reported_status(record(Waiting()))
    assert reported_status(record(Waiting()))["imageID"] == ""
    running = reported_status(record(Running(1.0), 2, last=FIRST_END))
    assert running["containerID"] == container_id("u", "main", 2)
    assert running["imageID"] == image_id("example.com/web:1")


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("nginx", "nginx"),
        ("nginx:1.29", "nginx"),
        ("localhost:5000/web", "localhost:5000/web"),
        ("localhost:5000/web:2", "localhost:5000/web"),
        ("web@sha256:abc", "web"),
    ],
)
def test_an_image_has_an_id_under_its_repository(image: str, repository: str) -> None:
    assert image_id(image).partition("@sha256:")[0] == repository


def test_one_that_could_not_be_found_has_neither_times_nor_an_id() -> None:
    state = reported_status(record(Exited(137, 0.0, 0.0, "ContainerStatusUnknown", "gone")))["state"]
    assert state == {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "gone"}}


def test_amounts_and_mounts_are_reported() -> None:
    one = record(Running(1.0))
    one.container = KubeletContainer(
        name="main",
        image="web",
        volume_mounts=(
            VolumeMount(name="data", mount_path="/data"),
            VolumeMount(name="keys", mount_path="/keys", read_only=True),
        ),
    )
    amounts = ResourceRequirements(requests={"cpu": "1"}, limits={"cpu": "2"})
    status = container_status(one, "u", is_initializing=False, resources=amounts)
    assert status["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    assert status["allocatedResources"] == {"cpu": "1"}
    assert status["volumeMounts"] == [
        {"name": "data", "mountPath": "/data"},
        {"name": "keys", "mountPath": "/keys", "readOnly": True, "recursiveReadOnly": "Disabled"},
    ]


@pytest.mark.parametrize("running", [Running(70.0), Running(70.0, is_ready=False), Running(70.0, is_started=False)])
def test_a_first_run_has_no_last_state(running: Running) -> None:
    first, later = reported_status(record(running, 1)), reported_status(record(running, 1, last=FIRST_END))
    assert list(first.items()) == list({**later, "lastState": {}}.items())  # in the same order, too


def test_a_pod_with_init_containers_initialises() -> None:
    status = container_status(record(None, -1), "u", is_initializing=True, resources=NO_RESOURCES)
    assert status["state"] == {"waiting": {"reason": "PodInitializing"}}


def conditions_told(
    body: Body, states: dict[str, ContainerState], phase: str, conditions: Body | None = None
) -> dict[str, Body]:
    known = [{"type": type, "status": status} for type, status in (conditions or {}).items()]
    one = view({**body, "status": {"conditions": known}}, generation=3)
    records = container_records(one.spec)
    for name, state in states.items():
        records[name].state = state
    found = conditions_of(one, [*records.values()], phase, has_sandbox=bool(states))
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
            INIT_AND_SIDECAR_POD,
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
        pytest.param(
            INIT_AND_SIDECAR_POD,
            {"init": DONE, "proxy": RUNS},
            "Pending",
            "Initialized",
            {"status": "True"},
            id="done",
        ),
        pytest.param(
            INIT_AND_SIDECAR_POD,
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
            TWO_CONTAINER_POD,
            {"a": RUNS, "b": UNREADY},
            "Running",
            "Ready",
            {"status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [b]"},
            id="one is not ready",
        ),
        pytest.param(
            TWO_CONTAINER_POD,
            {"a": RUNS, "b": RUNS},
            "Running",
            "ContainersReady",
            {"status": "True"},
            id="all are",
        ),
        pytest.param(
            INIT_AND_SIDECAR_POD,
            {"init": DONE, "main": RUNS},
            "Running",
            "ContainersReady",
            {"status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [proxy]"},
            id="a sidecar counts",
        ),
        pytest.param(pod(), {"main": DONE}, "Succeeded", "Ready", COMPLETED, id="a pod that is done"),
        pytest.param(
            pod(),
            {"main": FAILED},
            "Failed",
            "Ready",
            {"status": "False", "reason": "PodFailed"},
            id="that failed",
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
    assert conditions_told(body, states, phase)[type] == condition


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
    assert (
        conditions_told(GATED, {"main": RUNS}, "Running", {"example.com/load-balanced": status})["Ready"] == condition
    )


@pytest.mark.parametrize(
    ("status", "written", "patch"),
    [
        pytest.param({"phase": "Running"}, {"phase": "Running"}, {}, id="nothing changed"),
        pytest.param({"phase": "Running", "hostIP": "h"}, {"hostIP": "h"}, {"phase": "Running"}, id="a new field"),
        pytest.param({"phase": "Running"}, {"phase": "Pending"}, {"phase": "Running"}, id="another value"),
        pytest.param({}, {"reason": "Evicted"}, {"reason": None}, id="a field that is no longer reported"),
        pytest.param({"conditions": [READY]}, {"conditions": [READY]}, {}, id="the same conditions"),
        pytest.param(
            {"conditions": [NOT_READY, RESIZE]},
            {"conditions": [READY, RESIZE]},
            {"conditions": [{**NOT_READY, "reason": None, "message": None}]},
            id="another condition, without what was said of it before",
        ),
        pytest.param(
            {"conditions": [READY]},
            {"conditions": [READY, RESIZE]},
            {"conditions": [{"type": "PodResizePending", "$patch": "delete"}]},
            id="a condition that is no longer reported",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "a", "ready": True}, {"name": "b"}]},
            {"containerStatuses": [{"name": "a", "ready": False}, {"name": "b"}]},
            {"containerStatuses": [{"name": "a", "ready": True}, {"name": "b"}]},
            id="containers are reported together",
        ),
    ],
)
def test_only_what_differs_is_sent(status: Body, written: Body, patch: Body) -> None:
    assert status_patch(status, written) == patch


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    status: Body = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]}
    stamped = stamp_conditions(status, {"Ready": ("False", "t1"), "Initialized": ("True", "t1")}, "t2")
    assert stamped == {"Ready": ("True", "t2"), "Initialized": ("True", "t1")}
    assert [condition["lastTransitionTime"] for condition in status["conditions"]] == ["t2", "t1"]


def test_a_whole_status() -> None:
    one = view(pod(initContainers=[container("init")], ephemeralContainers=[container("shell")]), uid="u", generation=2)
    records = container_records(one.spec)
    records["main"].state, records["main"].attempt = Running(1.0), 0
    facts = PodFacts("Running", "172.16.0.1", "10.0.0.2", "t0", has_sandbox=True, resize=[dict(RESIZE)])
    status = status_of(one, [*records.values()], facts, {})
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
