"""What is told of a container."""

from __future__ import annotations

import pytest

from mooring.api.views.pod import NO_RESOURCES, ResourceRequirements
from mooring.kubelet.container_record import Slot
from mooring.kubelet.container_status import container_id, container_status, image_id
from mooring.kubelet.runtime import ContainerState, Exited, Role, Running, Waiting
from mooring.kubelet.views import KubeletContainer, VolumeMount
from tests.kubelet.play import Body

FIRST_END = Exited(1, 0.5, 60.0, "Error")
SECOND_END = Exited(0, 70.0, 120.0, "Completed")
STARTED = "1970-01-01T00:01:10Z"


def slot(state: ContainerState | None, attempt: int = 0, role: Role = Role.CONTAINER, **fields: object) -> Slot:
    one = Slot(KubeletContainer(name="main", image="example.com/web:1"), role)
    one.state, one.attempt = state, attempt
    for name, value in fields.items():
        setattr(one, name, value)
    return one


def told(one: Slot) -> Body:
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
        pytest.param(slot(None, -1), {"waiting": {"reason": "ContainerCreating"}}, {}, 0, False, False, id="new"),
        pytest.param(
            slot(Waiting("ErrImagePull", "not found")),
            {"waiting": {"reason": "ErrImagePull", "message": "not found"}},
            *({}, 0, False, False),
            id="waiting",
        ),
        pytest.param(slot(Running(70.0)), {"running": {"startedAt": STARTED}}, {}, 0, True, True, id="running"),
        pytest.param(
            slot(Running(70.0, is_ready=False)),
            {"running": {"startedAt": STARTED}},
            *({}, 0, False, True),
            id="running, but not ready",
        ),
        pytest.param(
            slot(Running(70.0, is_started=False)),
            {"running": {"startedAt": STARTED}},
            *({}, 0, False, False),
            id="running, but not up",
        ),
        pytest.param(slot(FIRST_END), {"terminated": FIRST_TOLD}, {}, 0, False, False, id="ended"),
        pytest.param(
            slot(FIRST_END, hold=Waiting("CrashLoopBackOff", "later")),
            {"waiting": {"reason": "CrashLoopBackOff", "message": "later"}},
            {"terminated": FIRST_TOLD},
            *(0, False, False),
            id="ended, and not started again yet",
        ),
        pytest.param(
            slot(FIRST_END, 1, is_starting=True),
            {"terminated": FIRST_TOLD},
            *({}, 0, False, False),
            id="ended, and just being started again",
        ),
        pytest.param(
            slot(Waiting("ErrImagePull"), 1, last=FIRST_END),
            {"waiting": {"reason": "ErrImagePull"}},
            {"terminated": FIRST_TOLD},
            *(0, False, False),
            id="to run again, and waiting",
        ),
        pytest.param(
            slot(Running(70.0), 1, last=FIRST_END),
            {"running": {"startedAt": STARTED}},
            {"terminated": FIRST_TOLD},
            *(1, True, True),
            id="running again",
        ),
        pytest.param(
            slot(SECOND_END, 1, last=FIRST_END),
            {"terminated": SECOND_TOLD},
            {"terminated": FIRST_TOLD},
            *(1, False, False),
            id="ended again",
        ),
        pytest.param(
            slot(Exited(0, 0.5, 60.0, "Error"), role=Role.INIT),
            {"terminated": {**FIRST_TOLD, "exitCode": 0}},
            *({}, 0, True, False),
            id="an init container that is done is ready",
        ),
        pytest.param(
            slot(Running(70.0), role=Role.INIT),
            {"running": {"startedAt": STARTED}},
            *({}, 0, False, True),
            id="one that runs is not",
        ),
    ],
)
def test_the_states(one: Slot, state: Body, last: Body, restarts: int, is_ready: bool, is_started: bool) -> None:
    status = told(one)
    assert status["state"] == state
    assert status["lastState"] == last
    assert (status["restartCount"], status["ready"], status["started"]) == (restarts, is_ready, is_started)


def test_only_what_has_run_has_an_id() -> None:
    assert "containerID" not in told(slot(Waiting()))
    assert told(slot(Waiting()))["imageID"] == ""
    running = told(slot(Running(1.0), 2, last=FIRST_END))
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
    state = told(slot(Exited(137, 0.0, 0.0, "ContainerStatusUnknown", "gone")))["state"]
    assert state == {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "gone"}}


def test_amounts_and_mounts_are_told() -> None:
    one = slot(Running(1.0))
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
def test_a_first_run_is_told_as_any_other_but_for_its_past(running: Running) -> None:
    first, later = told(slot(running, 1)), told(slot(running, 1, last=FIRST_END))
    assert list(first.items()) == list({**later, "lastState": {}}.items())  # in the same order, too


def test_a_pod_with_init_containers_initialises() -> None:
    status = container_status(slot(None, -1), "u", is_initializing=True, resources=NO_RESOURCES)
    assert status["state"] == {"waiting": {"reason": "PodInitializing"}}
